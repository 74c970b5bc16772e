-- SPDX-License-Identifier: LGPL-2.1-or-later
-- LuaJIT: compiled loops, errors through C and Lua frames, coroutines, FFI with callbacks, collections.
local ffi = require("ffi")
local bit = require("bit")
local rounds = tonumber(arg[1])

local n = 0
for i = 1, rounds do
	local ok, e = pcall(function() if i % 2 == 0 then error({ i }) end end)
	if not ok then n = n + e[1] end
end
print("tables as errors", n)

local function deep(k)
	if k == 0 then error("bottom") end
	return deep(k - 1) + 1
end
local caught, frames = 0, 0
for i = 1, rounds / 10 do
	local ok, trace = xpcall(deep, debug.traceback, i % 20)
	caught = caught + (ok and 0 or 1)
	for _ in trace:gmatch("in function 'deep'") do frames = frames + 1 end
end
print("tracebacks", caught, frames)
-- out of C functions: metamethods, string.gsub, table.sort
local bad = setmetatable({}, {
	__index = function(_, k) error("no " .. k, 0) end,
	__lt = function() error("order", 0) end,
})
local texts = {}
for i = 1, rounds / 10 do
	local _, a = pcall(function() return bad.x end)
	local _, b = pcall(string.gsub, "abc", ".", function(c) if c == "b" then error("gsub", 0) end end)
	local _, c = pcall(table.sort, { bad, bad, bad })
	texts[a .. b .. tostring(c)] = (texts[a .. b .. tostring(c)] or 0) + 1
end
for k, v in pairs(texts) do print(k, v) end
local function forever(k) return forever(k + 1) + 1 end
print(pcall(forever, 1))
print(pcall(string.rep, "x", -1), (pcall(error)))

local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
print("fib", fib(22))
local c = coroutine.wrap(function() for i = 1, rounds do coroutine.yield(i) end return -1 end)
local s = 0
for i = 1, rounds do s = s + c() end
print("coroutine", s)
local co = coroutine.create(function() coroutine.yield(1) error("inside") end)
print(coroutine.resume(co), select(2, coroutine.resume(co)), coroutine.status(co))
local t = {}
for i = 1, rounds * 5 do t[#t + 1] = string.rep("x", i % 20) .. i end
print("concat", #table.concat(t))
collectgarbage()

ffi.cdef [[
int abs(int);
void qsort(void *, size_t, size_t, int (*)(const int *, const int *));
]]
local sum = 0
for i = 1, rounds do sum = sum + ffi.C.abs(-i) end
local numbers = ffi.new("int[?]", 500)
for i = 0, 499 do numbers[i] = bit.band(i * 7919, 511) end
local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b) return a[0] - b[0] end)
ffi.C.qsort(numbers, 500, 4, compare)
compare:free()
for i = 1, 499 do assert(numbers[i - 1] <= numbers[i]) end
print("ffi", sum, numbers[0], numbers[499])
local finalized = 0
for i = 1, 200 do ffi.gc(ffi.new("int[10]"), function() finalized = finalized + 1 end) end
collectgarbage()
collectgarbage()
print("finalized", finalized)
