-- SPDX-License-Identifier: MIT
-- Takes a lock. Asking again with the same token is harmless: it gives the fence of the first time.
-- KEYS   1  lock key: holds `token:fence:label` (tokens are all 16 bytes)
-- ARGV   1  token
--        2  how long it lasts from now, ms
--        3  label, escaped: neither colon nor control characters
-- Reply  {1, fence}  mine; the fence is the server's time at the grant, in microseconds
--        {0, pttl}   another's, or something that is no lock of ours; pttl -1: it does not end by itself
-- The error of GET for a key of another type, or of SET when it is refused; nothing is written then.
local key, token, ms = KEYS[1], ARGV[1], ARGV[2]
local v = redis.pcall('GET', key)
if type(v) == 'table' then return v end
if v then
    if string.sub(v, 1, #token) ~= token then return {0, redis.call('PTTL', key)} end
    redis.call('PEXPIRE', key, ms)
    return {1, tonumber(string.match(v, '^:(%d+):', #token + 1) or 0)}
end
local t = redis.call('TIME')
local fence = string.format('%.0f', t[1] * 1000000 + t[2])
redis.call('SET', key, token .. ':' .. fence .. ':' .. ARGV[3], 'PX', ms)
return {1, tonumber(fence)}
