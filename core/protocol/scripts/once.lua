-- SPDX-License-Identifier: MIT
-- Claims an id for a while. Asking again with the same token is harmless, and does not make it last longer.
-- KEYS   1  once key: holds the token
-- ARGV   1  token
--        2  how long the claim lasts, ms
-- Reply  1  mine
--        0  another's
-- The error of GET for a key of another type, or of SET when it is refused; nothing is written then.
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'table' then return v end
if v then return v == ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
