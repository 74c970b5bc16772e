# SPDX-License-Identifier: LGPL-2.1-or-later
# Fibers, threads, callcc, exceptions with backtraces, ensure, catch and throw, GC with compaction and stress.
require 'continuation'
require 'digest'
require 'objspace'
rounds = ARGV[0].to_i

def walk(n, fiber = Fiber)
	n.zero? ? (fiber.yield(0); 0) : walk(n - 1, fiber) + 1
end

fibers = (1..50).map { |i| Fiber.new { 10.times { |k| Fiber.yield walk(i % 10) + k }; i } }
sum = 0
until fibers.empty?
	fibers.each { |f| x = f.resume; sum += x if x }
	fibers.select!(&:alive?)
end
p sum

# callcc as a loop, as a search with backtracking, and as a jump out of a loop
def pick(list, back)
	callcc do |k|
		list.each { |x| callcc { |again| back.push(again); k.call(x) } }
		back.empty? ? nil : back.pop.call
	end
end
n = 0
k = callcc { |c| c }
n += 1
k.call(k) if n < rounds
p n
back = []
a = pick((1..12).to_a, back)
b = pick((1..12).to_a, back)
c = pick((1..13).to_a, back)
back.pop.call unless a * a + b * b == c * c && a < b
p [a, b, c]

def bottom(n)
	raise ArgumentError, "bottom" if n.zero?
	bottom(n - 1)
ensure
	$ensured = ($ensured || 0) + 1
end
frames = (1..rounds).sum { |i| begin; bottom(i % 40); rescue => e; e.backtrace.count { |l| l.include?("bottom") }; end }
p frames, $ensured
p (1..rounds).sum { |i| catch(:out) { 10.times { |k| throw :out, k if k == i % 10 }; 0 } }
def forever(n) = forever(n + 1) + 1
begin
	forever(0)
rescue SystemStackError => e
	p e.class
end

q = Queue.new
threads = (1..4).map { |t| Thread.new { rounds.times { |i| q << i * t }; Thread.current[:n] = t } }
threads.each(&:join)
s = 0
s += q.pop until q.empty?
p s
e = Enumerator.new { |y| i = 0; loop { y << (i += 1) } }
p e.lazy.select(&:even?).map { |x| x * x }.first(5), e.next, e.next
GC.start
GC.compact if GC.respond_to?(:compact)
GC.stress = true
p (1..20).map { |i| "s#{i}" * 3 }.join.size
GC.stress = false
h = {}
(rounds * 20).times { |i| h["k#{i % 997}"] = [i, i.to_s] }
p Digest::SHA256.hexdigest(h.to_a.inspect)
p Marshal.load(Marshal.dump(h)) == h
