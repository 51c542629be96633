# What the Python extension needs of others: the headers of fmt and Highway, and nothing when it runs. Those of the system
# are taken; where it has none, they are fetched, at a commit that cannot change.
include(FetchContent)

find_package(fmt QUIET)
if(NOT fmt_FOUND)
  FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt
    GIT_TAG a33701196adfad74917046096bf5a2aa0ab0bb50) # 9.1.0
  FetchContent_MakeAvailable(fmt)
endif()
set(MH_FMT fmt::fmt-header-only)

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
