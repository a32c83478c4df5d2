// SPDX-License-Identifier: MIT
#include "bites.hpp"

namespace stn::differ {

namespace {

constexpr bite table[] = {
    {script_id::lease, "foreign = 1\nelseif v then", "foreign = 0\nelseif v then"},
    {script_id::lease, "if not string.find(v.err, 'WRONGTYPE', 1, true) then", "if true then"},
    {script_id::lease, "#v < 44", "#v < 45"},
    {script_id::lease, "flags >= 128 or ", ""},
    {script_id::lease, "kind > 4", "kind > 5"},
    {script_id::lease, "% 4 == 3", "% 4 == 4"},
    {script_id::lease, "if flags < 64 and", "if"},
    {script_id::lease, "65536 * c", "65535 * c"},
    {script_id::lease, "string.byte(v, 2) > 1 then return {3", "string.byte(v, 2) > 2 then return {3"},
    {script_id::lease, " or pttl == -1", ""},
    {script_id::lease, "among(generation, 4, 3 + rejected)", "among(generation, 4, 2 + rejected)"},
    {script_id::lease, "among(generation, 4 + rejected, #ARGV)", "among(generation, 5 + rejected, #ARGV)"},
    {script_id::lease, "generation == string.sub(placeholder, 5, 20) or ", ""},
    {script_id::lease, ".. string.sub(v, 4, 4) ..", ".. '\\0' .."},
    {script_id::lease, "redis.pcall('SETRANGE', key, 3, '\\1')", "redis.call('SETRANGE', key, 3, '\\1')"},
    {script_id::lease, "then redis.pcall('SETRANGE', key, 3, '\\1') end", "then end"},
    {script_id::lease, "'PX', ms)", "'PX', ms, 'NX')"},
    {script_id::lease, "'PX', ms)", "'PX', ms + 30)"},
    {script_id::extend, "~= ARGV[1] then", "== ARGV[1] then"},
    {script_id::extend, " or string.byte(head, 3) % 16 ~= 1", ""},
    {script_id::extend, "redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""},
    {script_id::fill, "and 1 or 0", "and 0 or 0"},
    {script_id::fill, "if generation ~= ARGV[1] then", "if generation ~= ARGV[1] and #ARGV[2] > 60 then"},
    {script_id::fill, "<= 4096", "< 4096"},
    {script_id::fill, "string.byte(head, 4) ~= 0 and ", ""},
    {script_id::fill, "and ARGV[5] ~= ''", ""},
    {script_id::fill, "redis.pcall(ARGV[4]", "redis.call(ARGV[4]"},
    {script_id::fill, "'\\1\\0' .. ARGV[1]", "'\\1\\1' .. ARGV[1]"},
    {script_id::abandon, "% 16 ~= 1", "% 2 ~= 1"},
    {script_id::abandon, "for i = 7", "for i = 8"},
    {script_id::abandon, "redis.call('DEL', key)", ""},
    {script_id::abandon, "reply, kind = 2, '\\2'", "reply, kind = 1, '\\2'"},
    {script_id::abandon, "reply, kind = 2, '\\2'", "reply, kind = 2, '\\3'"},
    {script_id::abandon, "kind = ARGV[1] == 'error' and '\\1' or '\\2'", "kind = '\\1'"},
    {script_id::abandon, "<= 4096", "< 4096"},
    {script_id::abandon, "redis.pcall(ARGV[4]", "redis.call(ARGV[4]"},
    {script_id::mark_stale, "head == '' and redis.call('EXISTS', key) == 0", "head == ''"},
    {script_id::mark_stale, "if kind then generation", "if kind == 0 then generation"},
    {script_id::mark_stale, "kind == 0 and redis.call('PTTL', key) ~= -1", "kind == 0"},
    {script_id::mark_stale, "kind == 0 and", "kind and"},
    {script_id::mark_stale, "'SETRANGE', key, 4, patch", "'SETRANGE', key, 4, fresh"},
    {script_id::mark_stale, "redis.pcall('SETRANGE'", "redis.call('SETRANGE'"},
    {script_id::mark_stale, "redis.call('DEL', key)", ""},
    {script_id::mark_stale, "if ARGV[3] ~= '' then", "if true then"},
    {script_id::mark_stale, "redis.pcall(ARGV[2]", "redis.call(ARGV[2]"},
    {script_id::put, "reply = 2\nelseif", "reply = 1\nelseif"},
    {script_id::put, "head ~= '' or redis.call('EXISTS', key) == 1", "head ~= ''"},
    {script_id::put, "if not newer and", "if"},
    {script_id::put, " or redis.call('PTTL', key) == -1", ""},
    {script_id::put, "if kind and string.byte(head, 4) ~= 0", "if #head > 3 and string.byte(head, 4) ~= 0"},
    {script_id::put, "string.sub(head, 5, 20)", "string.sub(ARGV[1], 5, 20)"},
    {script_id::put, "<= 4096", "< 4096"},
    {script_id::refresh, "redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""},
    {script_id::refresh, "if pttl ~= -1 then return", "if true then return"},
    {script_id::refresh, "'PX', ARGV[2])", "'PX', ARGV[2], 'NX')"},
    {script_id::renew, "string.sub(v, 1, #ARGV[1]) ~= ARGV[1]", "v ~= ARGV[1]"},
    {script_id::renew, "if not v then return 0 end", "if not v then return -1 end"},
    {script_id::renew, "redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""},
    {script_id::release, "string.sub(v, 1, #ARGV[1]) ~= ARGV[1]", "v ~= ARGV[1]"},
    {script_id::release, "'\\1\\3' .. ARGV[1]", "'\\1\\4' .. ARGV[1]"},
    {script_id::release, "redis.call('DEL', KEYS[1])", ""},
    {script_id::release, "redis.pcall(ARGV[2]", "redis.call(ARGV[2]"},
};

} // namespace

std::span<const bite> bites() {
    return table;
}

} // namespace stn::differ
