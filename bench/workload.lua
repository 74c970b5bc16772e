-- The workload of the Lua bench: tables, strings, closures, sorting, coroutines.
local function sieve(n)
  local prime, count = {}, 0
  for i = 2, n do prime[i] = true end
  for i = 2, n do
    if prime[i] then
      count = count + 1
      for j = i * i, n, i do prime[j] = false end
    end
  end
  return count
end

local words = {}
for i = 1, 5000 do words[i] = string.format("word%05d", i * 7919 % 5000) end
table.sort(words, function(a, b) return a < b end)
local text = table.concat(words, " ")
local digits = 0
for d in text:gmatch("%d+") do digits = digits + #d end
local turns = 0
local step = coroutine.wrap(function() for i = 1, 100000 do coroutine.yield(i) end end)
for _ = 1, 100000 do turns = turns + step() end
print(sieve(200000), #text, digits, turns, (text:gsub("9", "nine")):len())
