-- SPDX-License-Identifier: MIT
-- Stores a value whatever stands there: the last writer wins.
-- KEYS   1  value key
-- ARGV   1  envelope
--        2  how long it lasts, ms
--        3  PUBLISH or SPUBLISH
--        4  wake-up channel, or nothing
--        5  wake-up tail: u16 length and the key
-- Reply  1  stored
--        2  stored over something that was not ours
-- The error of SET when it is refused; nothing is written then.
local function kind_of(v, length)
    if #v < 44 or string.sub(v, 1, 2) ~= '\245\1' then return nil end
    local flags = string.byte(v, 3)
    local kind = flags % 16
    if flags >= 128 or kind > 4 or math.floor(flags / 16) % 4 == 3 then return nil end
    local a, b, c, d = string.byte(v, 41, 44)
    if flags < 64 and a + 256 * b + 65536 * c + 16777216 * d ~= length - 44 then return nil end
    return kind
end

local key = KEYS[1]
local reply, kind = 1, nil
local head = redis.pcall('GETRANGE', key, 0, 43)
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    reply = 2
elseif head ~= '' or redis.call('EXISTS', key) == 1 then
    kind = kind_of(head, redis.call('STRLEN', key))
    local newer = #head > 1 and string.byte(head, 1) == 245 and string.byte(head, 2) > 1
    if not newer and (not kind or redis.call('PTTL', key) == -1) then reply = 2 end
end
redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
if kind and string.byte(head, 4) ~= 0 and ARGV[4] ~= '' then
    local small = #ARGV[1] <= 4096 and ARGV[1] or ''
    redis.pcall(ARGV[3], ARGV[4], '\1\0' .. string.sub(head, 5, 20) .. ARGV[5] .. small)
end
return reply
