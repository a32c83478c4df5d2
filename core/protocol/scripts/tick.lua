-- SPDX-License-Identifier: MIT
-- Takes the run of the slot that the server's clock says it is. A slot is given out once.
-- KEYS   1  tick key: holds `slot:token:fence:state`; slot is its first millisecond, state running or done
-- ARGV   1  token
--        2  every: how long a slot is, ms
--        3  offset of the slots from the epoch, ms
--        4  at_most: a run counts as dead that long after its grant, ms; then a later slot may begin
-- Reply  {1, slot, fence}  mine; the fence is the server's time at the grant, in microseconds. Asking again with
--                          the same token gives the same, even when the next slot has begun meanwhile
--        {0, slot, ms}     slot, now or later, was given out; the next one begins in ms
--        {2, slot, ms}     the run of an earlier slot goes on; it counts as dead in ms
--        {3, 0, 0}         something stands there that is no tick of ours
-- The error of GET for a key of another type, or of SET when it is refused; nothing is written then.
local key, token = KEYS[1], ARGV[1]
local every, offset, at_most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (every and offset and at_most) or every < 1 or at_most < 0 or
    math.max(every, math.abs(offset), at_most) > 1e13 then
    return redis.error_reply('ERR the slots of the tick make no sense')
end
local v = redis.pcall('GET', key)
if type(v) == 'table' then return v end
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = math.floor(us / 1000)
local slot = now - (now - offset) % every
if v then
    local start, rest = string.match(v, '^(%-?%d+):(.*)$')
    local fence, state = string.match(rest or '', '^:(%d+):(%a+)$', #token + 1)
    if not fence or #start > 16 or #fence > 16 or state ~= 'running' and state ~= 'done' then return {3, 0, 0} end
    start, fence = tonumber(start), tonumber(fence)
    if state == 'running' and string.sub(rest, 1, #token) == token then return {1, start, fence} end
    if start >= slot then return {0, start, slot + every - now} end
    local dead = math.floor(fence / 1000) + at_most
    if state == 'running' and now <= dead then return {2, start, dead + 1 - now} end
end
local fence = string.format('%.0f', us)
local value = string.format('%.0f', slot) .. ':' .. token .. ':' .. fence .. ':running'
redis.call('SET', key, value, 'PX', string.format('%.0f', math.max(2 * every, at_most)))
return {1, slot, tonumber(fence)}
