-- SPDX-License-Identifier: MIT
-- Invalidates a value but leaves it readable: a fresh generation, so that loads in progress are
-- refused, and a soft expiry of 0. Whatever cannot be marked is deleted.
-- KEYS   1  value key
-- ARGV   1  fresh generation
--        2  PUBLISH or SPUBLISH
--        3  wake-up channel, or nothing
--        4  wake-up tail: u16 length and the key
-- Reply  0  nothing there
--        1  a value, marked
--        2  something else (placeholder, marker, newer, not ours, or refused): deleted and told
local function kind_of(v, length)
    if #v < 44 or string.sub(v, 1, 2) ~= '\245\1' then return nil end
    local flags = string.byte(v, 3)
    local kind = flags % 16
    if flags >= 128 or kind > 4 or math.floor(flags / 16) % 4 == 3 then return nil end
    local a, b, c, d = string.byte(v, 41, 44)
    if flags < 64 and a + 256 * b + 65536 * c + 16777216 * d ~= length - 44 then return nil end
    return kind
end

local key, fresh = KEYS[1], ARGV[1]
local generation = string.rep('\0', 16)
local head = redis.pcall('GETRANGE', key, 0, 43)
if type(head) == 'table' then
    if not string.find(head.err, 'WRONGTYPE', 1, true) then return head end
else
    if head == '' and redis.call('EXISTS', key) == 0 then return 0 end
    local kind = kind_of(head, redis.call('STRLEN', key))
    if kind then generation = string.sub(head, 5, 20) end
    if kind == 0 and redis.call('PTTL', key) ~= -1 then
        local patch = fresh .. string.sub(head, 21, 28) .. string.rep('\0', 8)
        local r = redis.pcall('SETRANGE', key, 4, patch)
        if type(r) ~= 'table' then return 1 end
    end
end
redis.call('DEL', key)
if ARGV[3] ~= '' then
    redis.pcall(ARGV[2], ARGV[3], '\1\4' .. generation .. ARGV[4])
end
return 2
