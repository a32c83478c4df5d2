-- SPDX-License-Identifier: MIT
-- Stores a value in place of the very lease, or generation, that it was loaded for.
-- KEYS   1  value key
-- ARGV   1  the generation (or token) that must stand there
--        2  envelope
--        3  how long it lasts, ms
--        4  PUBLISH or SPUBLISH
--        5  wake-up channel, or nothing
--        6  wake-up tail: u16 length and the key
-- Reply  1  stored, or had been by an earlier copy of this command
--        0  something else stands there, or nothing; nothing is written
-- The error of SET when it is refused; nothing is written then.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 19)
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    return 0
end
if #head < 20 or string.sub(head, 1, 2) ~= '\245\1' then return 0 end
local generation = string.sub(head, 5, 20)
if generation ~= ARGV[1] then
    return generation == string.sub(ARGV[2], 5, 20) and 1 or 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if string.byte(head, 4) ~= 0 and ARGV[5] ~= '' then
    local small = #ARGV[2] <= 4096 and ARGV[2] or ''
    redis.pcall(ARGV[4], ARGV[5], '\1\0' .. ARGV[1] .. ARGV[6] .. small)
end
return 1
