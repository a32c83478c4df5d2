-- SPDX-License-Identifier: MIT
-- Takes the lease of a value key, or tells what stands there instead.
-- KEYS   1  value key
-- ARGV   1  placeholder envelope (44 bytes)
--        2  how long it lasts, ms
--        3  n: how many rejected generations follow
--        4.. 3+n  generations that count as misses
--        4+n..    tokens of this process whose answers never came
-- Reply  {1, foreign, ''}  granted; foreign 1: something that was not ours was overwritten
--        {2, pttl, bytes}  another's placeholder, marked as waited for
--        {3, pttl, bytes}  a value or a marker; or a newer version, left alone
-- The error of SET when it is refused; nothing is written then.
local function kind_of(v)
    if #v < 44 or string.sub(v, 1, 2) ~= '\245\1' then return nil end
    local flags = string.byte(v, 3)
    local kind = flags % 16
    if flags >= 128 or kind > 4 or math.floor(flags / 16) % 4 == 3 then return nil end
    local a, b, c, d = string.byte(v, 41, 44)
    if flags < 64 and a + 256 * b + 65536 * c + 16777216 * d ~= #v - 44 then return nil end
    return kind
end

local function among(generation, first, last)
    for i = first, last do
        if ARGV[i] == generation then return true end
    end
    return false
end

local key, placeholder, ms, rejected = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local v = redis.pcall('GET', key)
local foreign = 0
if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    foreign = 1
elseif v then
    local pttl = redis.call('PTTL', key)
    if #v > 1 and string.byte(v, 1) == 245 and string.byte(v, 2) > 1 then return {3, pttl, v} end
    local kind = kind_of(v)
    local generation = string.sub(v, 5, 20)
    if not kind or pttl == -1 then
        foreign = 1
    elseif kind ~= 1 then
        if not among(generation, 4, 3 + rejected) then return {3, pttl, v} end
    elseif generation == string.sub(placeholder, 5, 20) or among(generation, 4 + rejected, #ARGV) then
        -- whoever waits for the earlier token waits for this one
        placeholder = string.sub(placeholder, 1, 3) .. string.sub(v, 4, 4) .. string.sub(placeholder, 5)
    else
        -- refused at maxmemory: then the others find out by their own timers
        if string.byte(v, 4) == 0 then redis.pcall('SETRANGE', key, 3, '\1') end
        return {2, pttl, v}
    end
end
redis.call('SET', key, placeholder, 'PX', ms)
return {1, foreign, ''}
