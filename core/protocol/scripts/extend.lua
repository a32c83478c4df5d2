-- SPDX-License-Identifier: MIT
-- Renews a lease. Never creates: a placeholder that an invalidation removed must stay removed.
-- KEYS   1  value key
-- ARGV   1  token
--        2  how long it lasts from now, ms
-- Reply  1  still mine
--        0  not mine any more
local head = redis.pcall('GETRANGE', KEYS[1], 0, 19)
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
    return 0
end
if #head < 20 or string.sub(head, 1, 2) ~= '\245\1' or string.byte(head, 3) % 16 ~= 1 or
    string.sub(head, 5, 20) ~= ARGV[1] then
    return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
