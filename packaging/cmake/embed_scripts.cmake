# SPDX-License-Identifier: MIT
#
# cmake -DFOLDER=<scripts> -DHEADER=<out> -P embed_scripts.cmake
# Writes every FOLDER/NAME.lua, byte for byte, with its SHA1 (the name a server knows it by) into one header.

file(GLOB scripts "${FOLDER}/*.lua")
list(SORT scripts)
list(LENGTH scripts count)

set(rows "")
foreach(path IN LISTS scripts)
  get_filename_component(name "${path}" NAME_WE)
  file(READ "${path}" text)
  file(SHA1 "${path}" sha1)
  string(FIND "${text}" "\r" carriage_return)
  string(FIND "${text}" ")stn_lua\"" delimiter)
  if(NOT carriage_return EQUAL -1 OR NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${path}: a carriage return or )stn_lua\" cannot be embedded faithfully")
  endif()
  string(APPEND rows "    embedded{\"${name}\",\nR\"stn_lua(${text})stn_lua\",\n        \"${sha1}\"},\n")
endforeach()

file(WRITE "${HEADER}" "// SPDX-License-Identifier: MIT
// Generated from core/protocol/scripts/*.lua at build time; sorted by name.
#pragma once

#include <array>
#include <string_view>

namespace stn::scripts {

struct embedded {
    std::string_view name, text, sha1;
};

inline constexpr std::array<embedded, ${count}> table = {
${rows}};

}  // namespace stn::scripts
")
