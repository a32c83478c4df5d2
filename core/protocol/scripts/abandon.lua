-- SPDX-License-Identifier: MIT
-- Gives a lease up, perhaps leaving a marker in its place. Never touches a value.
-- KEYS   1  value key
-- ARGV   1  marker: none, error or pass
--        2  marker envelope
--        3  how long the marker lasts, ms
--        4  PUBLISH or SPUBLISH
--        5  wake-up channel, or nothing
--        6  wake-up tail: u16 length and the key
--        7.. every token of mine that may stand there
-- Reply  1  given up
--        2  given up, but the marker was refused
--        0  none of my tokens stands there
local key = KEYS[1]
local head = redis.pcall('GETRANGE', key, 0, 19)
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    return 0
end
if #head < 20 or string.sub(head, 1, 2) ~= '\245\1' or string.byte(head, 3) % 16 ~= 1 then return 0 end
local token = string.sub(head, 5, 20)
local mine = false
for i = 7, #ARGV do
    if ARGV[i] == token then mine = true end
end
if not mine then return 0 end
-- DEL first: after a write the marker is not refused for want of memory
redis.call('DEL', key)
local reply, kind, small = 1, '\3', ''
if ARGV[1] ~= 'none' then
    if redis.pcall('SET', key, ARGV[2], 'PX', ARGV[3]).err then
        reply, kind = 2, '\2'
    else
        kind = ARGV[1] == 'error' and '\1' or '\2'
        if #ARGV[2] <= 4096 then small = ARGV[2] end
    end
end
if string.byte(head, 4) ~= 0 and ARGV[5] ~= '' then
    redis.pcall(ARGV[4], ARGV[5], '\1' .. kind .. token .. ARGV[6] .. small)
end
return reply
