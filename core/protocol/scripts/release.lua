-- SPDX-License-Identifier: MIT
-- Gives back what is held under a token.
-- KEYS   1  key whose value begins with the token (tokens are all 16 bytes)
-- ARGV   1  token
--        2  PUBLISH or SPUBLISH
--        3  wake-up channel, or nothing
--        4  wake-up tail: u16 length and the key; of a lock, then, what its holder had waited through (u16)
-- Reply   1  was mine: deleted and told
--         0  nobody's
--        -1  another's
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    return -1
end
if not v then return 0 end
if string.sub(v, 1, #ARGV[1]) ~= ARGV[1] then return -1 end
redis.call('DEL', KEYS[1])
if ARGV[3] ~= '' then
    redis.pcall(ARGV[2], ARGV[3], '\1\3' .. ARGV[1] .. ARGV[4])
end
return 1
