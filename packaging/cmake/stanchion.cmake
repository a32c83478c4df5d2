# SPDX-License-Identifier: MIT
#
# What every target of this repository shares: language, flags, and the two functions the CMakeLists use.
# Sources are globbed per folder, so adding a file needs no edit here; a layer without any .cpp yet is an
# interface library, so that the tree configures and builds at every stage.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The library is linked statically and hidden into bindings, so every object is position independent and hidden.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A STB_GNU_UNIQUE symbol would be shared by two copies of us in one process.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
endif()

if(STN_SANITIZE)
  set(flags -fsanitize=${STN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${flags})
  add_link_options(${flags})
endif()

find_program(STN_CCACHE ccache)
if(STN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${STN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STN_CCACHE})
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)

# Our own code compiles without a warning; system headers are none of our business.
# -Wsign-conversion is named because clang's -Wconversion contains it and g++'s does not.
function(stn_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports false -Wrestrict inside std::string (GCC PR 105651), and false -Wmaybe-uninitialized
    # in code that a sanitizer has instrumented.
    target_compile_options(${target} PRIVATE -Wno-restrict)
    if(STN_SANITIZE)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()

# stn_layer(<target> <folder> LINKS <targets...> [PRIVATE_LINKS <targets...>])
# One layer of the library: all .cpp of a folder, seen by others through the include root core/.
function(stn_layer target folder)
  cmake_parse_arguments(arg "" "" "LINKS;PRIVATE_LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${target} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
    stn_warnings(${target})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE ${arg_LINKS})
  endif()
endfunction()
