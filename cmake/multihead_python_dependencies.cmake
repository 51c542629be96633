# What the Python extension needs of others. fmt and Highway are fetched, at a commit that cannot change, where the system has
# none; the rest has to be installed, and one sentence names all that is missing.
include(FetchContent)

find_package(fmt QUIET)
if(NOT fmt_FOUND)
  FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt
    GIT_TAG a33701196adfad74917046096bf5a2aa0ab0bb50) # 9.1.0
  FetchContent_MakeAvailable(fmt)
endif()
set(MH_FMT fmt::fmt)

find_path(MH_HIGHWAY hwy/highway.h DOC "where hwy/highway.h lies")
if(NOT MH_HIGHWAY)
  FetchContent_Declare(highway GIT_REPOSITORY https://github.com/google/highway
    GIT_TAG 58746ca5b9f9444a2a3549704602ecc6239f8f41) # 1.0.3
  FetchContent_GetProperties(highway)
  if(NOT highway_POPULATED)
    FetchContent_Populate(highway)
  endif()
  include_directories(SYSTEM ${highway_SOURCE_DIR})
endif()

set(missing)
foreach(package simdjson ICU ZLIB LibLZMA PNG JPEG nlohmann_json)
  set(parts)
  if(package STREQUAL ICU)
    set(parts COMPONENTS uc)
  endif()
  find_package(${package} QUIET ${parts})
  if(NOT ${package}_FOUND)
    list(APPEND missing ${package})
  endif()
endforeach()
find_path(MH_TOML toml++/toml.h DOC "where toml++/toml.h lies")
find_path(MH_XXHASH xxhash.h DOC "where xxhash.h lies")
foreach(header MH_TOML MH_XXHASH)
  if(NOT ${header})
    list(APPEND missing ${header})
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "multihead needs libraries that are not installed: ${missing}. On Debian: apt-get install "
    "libsimdjson-dev libicu-dev zlib1g-dev liblzma-dev libpng-dev libjpeg62-turbo-dev "
    "nlohmann-json3-dev libtomlplusplus-dev libxxhash-dev")
endif()
set(MH_LIBRARIES simdjson::simdjson ICU::uc ZLIB::ZLIB LibLZMA::LibLZMA PNG::PNG JPEG::JPEG Threads::Threads)
