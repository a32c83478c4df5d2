-- SPDX-License-Identifier: MIT
-- Renews what is held under a token. Never creates.
-- KEYS   1  key whose value begins with the token (tokens are all 16 bytes)
-- ARGV   1  token
--        2  how long it lasts from now, ms
-- Reply   1  mine
--         0  nobody's
--        -1  another's
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    return -1
end
if not v then return 0 end
if string.sub(v, 1, #ARGV[1]) ~= ARGV[1] then return -1 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
