-- Coroutines, closures, strings, garbage, errors. Deterministic.
local n = tonumber(arg[1]) or 20
local function fib(k) if k < 2 then return k end return fib(k-1) + fib(k-2) end
print(fib(n))
local function gen(k) return coroutine.wrap(function() for i = 1, k do coroutine.yield(i * i) end end) end
local s = 0
for v in gen(5000) do s = s + v end
print(s)
local t = {}
for i = 1, 20000 do t[i] = (i * 7919) % 20011 end
table.sort(t, function(a, b) return a < b end)
print(t[1], t[10000], t[20000])
local words = {}
for w in ("the quick brown fox jumps over the lazy dog "):rep(200):gmatch("%a+") do words[w] = (words[w] or 0) + 1 end
local keys = {}
for k in pairs(words) do keys[#keys + 1] = k end
table.sort(keys)
for _, k in ipairs(keys) do io.write(k, "=", words[k], " ") end print()
for i = 1, 500 do
  local ok, e = pcall(function() if i % 2 == 0 then error({ code = i }) end return nil + 1 end)
  assert(not ok and (i % 2 == 1 or e.code == i))
end
local mt = setmetatable({}, { __index = function(_, k) return k * 2 end, __gc = function() end, __close = function() end })
print(mt[21], string.format("%5.2f %q %x", 3.14159, "a\nb", 255))
for i = 1, 200 do local x = setmetatable({ ("x"):rep(i) }, { __gc = function() s = s + 1 end }) end
collectgarbage() collectgarbage()
print(s, select("#", table.unpack({ 1, 2, 3 })), #string.dump(fib) > 0)
