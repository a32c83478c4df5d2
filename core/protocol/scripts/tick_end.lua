-- SPDX-License-Identifier: MIT
-- Ends a run that `tick` gave out.
-- KEYS   1  tick key
-- ARGV   1  token
--        2  done: the slot stays used; undone: another may take it
--        3  how long a used slot is remembered from now, ms
-- Reply   1  was mine: ended
--         0  nobody's
--        -1  another's, or no tick of ours
local key, token = KEYS[1], ARGV[1]
local v = redis.pcall('GET', key)
if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    return -1
end
if not v then return 0 end
local start, rest = string.match(v, '^(%-?%d+):(.*)$')
if not start or string.sub(rest, 1, #token) ~= token then return -1 end
local fence, state = string.match(rest, '^:(%d+):(%a+)$', #token + 1)
if not fence or #start > 16 or #fence > 16 or state ~= 'running' and state ~= 'done' then return -1 end
-- DEL first: after a write SET is not refused for want of memory
redis.call('DEL', key)
if ARGV[2] == 'done' then
    redis.call('SET', key, start .. ':' .. token .. ':' .. fence .. ':done', 'PX', ARGV[3])
end
return 1
