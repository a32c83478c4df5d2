-- SPDX-License-Identifier: MIT
-- Shows what stands in a key, and for how long.
-- KEYS   1  any key
-- ARGV   none
-- Reply  {pttl, bytes}  pttl -2: nothing stands there; -1: it does not end by itself
-- The error of GET for a key of another type.
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'table' then return v end
return {redis.call('PTTL', KEYS[1]), v or ''}
