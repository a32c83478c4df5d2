-- SPDX-License-Identifier: MIT
-- Takes the refresh lease of one generation: the bare token. Asking again with the same token is
-- harmless.
-- KEYS   1  refresh key
-- ARGV   1  token
--        2  how long it lasts, ms
-- Reply  {1, 0}     mine
--        {0, pttl}  another's
-- The error of SET when it is refused; nothing is written then.
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
elseif v == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, 0}
elseif v then
    local pttl = redis.call('PTTL', KEYS[1])
    -- without a TTL it is nobody's, and would stand in the way for ever
    if pttl ~= -1 then return {0, pttl} end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, 0}
