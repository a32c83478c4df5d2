# SPDX-License-Identifier: MIT
#
# Target stn_cli11: CLI11, which reads the arguments. Installed (libcli11-dev), or upstream's release, downloaded;
# -DSTN_CLI11_URL=URL names another place of the same bytes. stn_cli11_found tells whether there is one.

set(STN_CLI11_MINIMUM 2.1)
set(STN_CLI11_SHA256 f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a) # as other packagers pin it
set(STN_CLI11_URL "https://github.com/CLIUtils/CLI11/archive/v2.4.2.tar.gz"
    CACHE STRING "Where CLI11 is downloaded from when none is found")

set(stn_cli11_found FALSE)
if(STN_CLI STREQUAL "AUTO" AND NOT PROJECT_IS_TOP_LEVEL)
  return() # part of somebody's build: the library is what is wanted
endif()
add_library(stn_cli11 INTERFACE)
find_package(CLI11 ${STN_CLI11_MINIMUM} QUIET CONFIG)
if(CLI11_FOUND)
  message(STATUS "Found CLI11 ${CLI11_VERSION}")
  target_link_libraries(stn_cli11 INTERFACE CLI11::CLI11)
  set(stn_cli11_found TRUE)
  return()
endif()

set(archive "${PROJECT_BINARY_DIR}/CLI11-2.4.2.tar.gz")
set(sha256 "")
if(EXISTS "${archive}")
  file(SHA256 "${archive}" sha256)
endif()
if(NOT sha256 STREQUAL STN_CLI11_SHA256)
  message(STATUS "No CLI11 >= ${STN_CLI11_MINIMUM} is installed; downloading ${STN_CLI11_URL}")
  file(DOWNLOAD "${STN_CLI11_URL}" "${archive}" STATUS status INACTIVITY_TIMEOUT 20 TIMEOUT 120)
  file(SHA256 "${archive}" sha256)
endif()
if(NOT sha256 STREQUAL STN_CLI11_SHA256)
  file(REMOVE "${archive}")
  message(STATUS "CLI11 could not be downloaded: ${status}")
  return()
endif()
include(FetchContent)
FetchContent_Declare(cli11 URL "${archive}" URL_HASH SHA256=${STN_CLI11_SHA256} SOURCE_SUBDIR not-its-own)
FetchContent_MakeAvailable(cli11)
target_include_directories(stn_cli11 SYSTEM INTERFACE "${cli11_SOURCE_DIR}/include")
set(stn_cli11_found TRUE)
