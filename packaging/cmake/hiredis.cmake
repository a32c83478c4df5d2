# SPDX-License-Identifier: MIT
#
# Target stn_hiredis: hiredis >= 1.2 with TLS, as <hiredis/hiredis.h> and <hiredis/hiredis_ssl.h>, and OpenSSL.
# Looked for in this order, in each place for static archives first:
#   installed: a CMake package, pkg-config or the usual folders; -Dhiredis_ROOT=FOLDER names another
#   build/deps/hiredis, where packaging/bootstrap_hiredis.sh puts it
#   upstream's release, downloaded; -DSTN_HIREDIS_URL=URL names another place of the same bytes

set(STN_HIREDIS_MINIMUM 1.2)
# The SHA256 of Debian's hiredis_1.2.0.orig.tar.gz. Several distributions pin the same for upstream's archive of the tag;
# that archive itself could not be downloaded where this was written.
set(STN_HIREDIS_SHA256 82ad632d31ee05da13b537c124f819eb88e18851d9cb0c30ae0552084811588c)
set(STN_HIREDIS_URL "https://github.com/redis/hiredis/archive/refs/tags/v1.2.0.tar.gz"
    CACHE STRING "Where hiredis is downloaded from when none is found")

find_package(OpenSSL 1.1.1 REQUIRED)
add_library(stn_hiredis INTERFACE)
set(stn_hiredis_refused "")

# What a CMake package or pkg-config knows of folders that find_library would not think of.
function(stn_hiredis_hints result)
  set(hints ${hiredis_ROOT} $ENV{hiredis_ROOT})
  find_package(hiredis ${STN_HIREDIS_MINIMUM} CONFIG QUIET)
  if(hiredis_FOUND)
    list(APPEND hints "${hiredis_DIR}/../../.." "${hiredis_DIR}/../..")
  endif()
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(STN_HIREDIS_PC QUIET "hiredis>=${STN_HIREDIS_MINIMUM}")
    list(APPEND hints ${STN_HIREDIS_PC_INCLUDEDIR} ${STN_HIREDIS_PC_LIBDIR})
  endif()
  set(${result} "${hints}" PARENT_SCOPE)
endfunction()

# Whether archives can become part of a shared library: they may have been compiled without -fPIC.
function(stn_hiredis_fits result)
  set(source "${PROJECT_BINARY_DIR}/CMakeFiles/stn_hiredis_fits.c")
  file(WRITE "${source}" "int stn_hiredis_fits(void);\nint stn_hiredis_fits(void) { return 0; }\n")
  try_compile(STN_HIREDIS_FITS "${PROJECT_BINARY_DIR}/CMakeFiles/stn_hiredis_fits" "${source}"
    LINK_OPTIONS -shared -Wl,-z,text,-z,defs
    LINK_LIBRARIES -Wl,--whole-archive ${ARGN} -Wl,--no-whole-archive OpenSSL::SSL OpenSSL::Crypto)
  set(${result} "${STN_HIREDIS_FITS}" PARENT_SCOPE)
endfunction()

# stn_find_hiredis(<words of find_path and find_library: where>): completes stn_hiredis, or tells in stn_hiredis_refused
# what is there and will not do.
function(stn_find_hiredis)
  find_path(include hiredis/hiredis.h ${ARGN} NO_CACHE)
  if(NOT include)
    return()
  endif()
  file(STRINGS "${include}/hiredis/hiredis.h" version REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) [0-9]")
  list(TRANSFORM version REPLACE "[^0-9]" "")
  list(JOIN version "." version)
  set(found "hiredis ${version} in ${include}")

  find_library(ssl_archive NAMES libhiredis_ssl.a libhiredis_ssld.a ${ARGN} NO_CACHE)
  find_library(archive NAMES libhiredis.a libhiredisd.a ${ARGN} NO_CACHE)
  find_library(ssl_shared NAMES hiredis_ssl hiredis_ssld ${ARGN} NO_CACHE)
  find_library(shared NAMES hiredis hiredisd ${ARGN} NO_CACHE)
  set(flaw "")
  if(version VERSION_LESS STN_HIREDIS_MINIMUM)
    set(flaw "is too old")
  elseif(NOT EXISTS "${include}/hiredis/hiredis_ssl.h" OR NOT ssl_shared OR NOT shared)
    set(flaw "has no hiredis_ssl beside it")
  endif()
  if(flaw)
    message(STATUS "${found} ${flaw}")
    set(stn_hiredis_refused "${stn_hiredis_refused}  ${found} ${flaw}\n" PARENT_SCOPE)
    return()
  endif()

  set(fits FALSE)
  if(ssl_archive AND archive)
    stn_hiredis_fits(fits "${ssl_archive}" "${archive}")
  endif()
  if(fits)
    set(libraries "${ssl_archive}" "${archive}")
    message(STATUS "Found ${found}, static")
  else()
    set(libraries "${ssl_shared}" "${shared}")
    message(WARNING "${found} has no archives that fit into a shared library: libstanchion will need its shared one")
  endif()
  target_include_directories(stn_hiredis SYSTEM INTERFACE "${include}")
  target_link_libraries(stn_hiredis INTERFACE ${libraries} OpenSSL::SSL OpenSSL::Crypto)
  set(stn_hiredis_found TRUE PARENT_SCOPE)
endfunction()

# Downloads and compiles it: not by upstream's CMakeLists.txt, which brings tests, packages and install rules.
function(stn_fetch_hiredis)
  set(archive "${PROJECT_BINARY_DIR}/hiredis-1.2.0.tar.gz")
  set(sha256 "")
  if(EXISTS "${archive}")
    file(SHA256 "${archive}" sha256)
  endif()
  if(NOT FETCHCONTENT_SOURCE_DIR_HIREDIS AND NOT sha256 STREQUAL STN_HIREDIS_SHA256)
    message(STATUS "No hiredis >= ${STN_HIREDIS_MINIMUM} is installed; downloading ${STN_HIREDIS_URL}")
    file(DOWNLOAD "${STN_HIREDIS_URL}" "${archive}" STATUS status INACTIVITY_TIMEOUT 20)
    file(SHA256 "${archive}" sha256)
    if(NOT sha256 STREQUAL STN_HIREDIS_SHA256)
      file(REMOVE "${archive}")
      message(FATAL_ERROR "Stanchion needs hiredis >= ${STN_HIREDIS_MINIMUM} with TLS.\n${stn_hiredis_refused}"
        "  its release could not be downloaded: ${status}, SHA256 ${sha256}\n"
        "  With apt, and without root: bash packaging/bootstrap_hiredis.sh\n"
        "  Otherwise install it with its headers, or give -Dhiredis_ROOT=FOLDER")
    endif()
  endif()
  include(FetchContent)
  FetchContent_Declare(hiredis URL "${archive}" URL_HASH SHA256=${STN_HIREDIS_SHA256} SOURCE_SUBDIR not-its-own)
  FetchContent_MakeAvailable(hiredis)

  set(include "${PROJECT_BINARY_DIR}/hiredis-include")
  foreach(header alloc async hiredis hiredis_ssl read sds)
    configure_file("${hiredis_SOURCE_DIR}/${header}.h" "${include}/hiredis/${header}.h" COPYONLY)
  endforeach()
  set(sources alloc.c async.c hiredis.c net.c read.c sds.c sockcompat.c ssl.c)
  list(TRANSFORM sources PREPEND "${hiredis_SOURCE_DIR}/")
  add_library(stn_hiredis_objects STATIC ${sources})
  set_target_properties(stn_hiredis_objects PROPERTIES C_EXTENSIONS ON)
  target_link_libraries(stn_hiredis_objects PRIVATE OpenSSL::SSL)
  target_include_directories(stn_hiredis SYSTEM INTERFACE "${include}")
  target_link_libraries(stn_hiredis INTERFACE stn_hiredis_objects OpenSSL::SSL OpenSSL::Crypto)
endfunction()

stn_hiredis_hints(stn_hiredis_places)
stn_find_hiredis(HINTS ${stn_hiredis_places} PATH_SUFFIXES include lib lib/${CMAKE_LIBRARY_ARCHITECTURE})
if(NOT stn_hiredis_found)
  stn_find_hiredis(PATHS "${PROJECT_SOURCE_DIR}/build/deps/hiredis" PATH_SUFFIXES include lib NO_DEFAULT_PATH)
endif()
if(NOT stn_hiredis_found)
  stn_fetch_hiredis()
endif()
