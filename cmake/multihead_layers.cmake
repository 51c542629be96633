# mh_layer(): one folder, one target.  mh_isa(): one rung, one translation unit with its flags.  mh_test(): one test binary.

# No contraction: a fused multiply-add is written by hand, so a formula has one rounding on every machine.
add_library(mh_flags INTERFACE)
target_include_directories(mh_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(mh_flags INTERFACE -Wall -Wextra -Wno-psabi -ffp-contract=off)

# mh_together(target): its sources are compiled a dozen at a time, so that headers are read and inline functions compiled once
# for all of them: 3 times less work in a layer, 4 times less in the program (CLI11), half in the tests. Not in `dev`, where an
# edit should cost one file, and where each file shows that it includes what it needs.
function(mh_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MH_TOGETHER} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# mh_layer(base DEPENDS …): object library of every source in the folder and its rooms, the folders inside it that have no
# CMakeLists.txt of their own. What leaves the shared library is decided in one place, the version script cmake/exports.map.
function(mh_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE layers_inside ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(inside ${layers_inside})
    cmake_path(GET inside PARENT_PATH inside)
    list(FILTER sources EXCLUDE REGEX "^${inside}/")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/isa_[a-z0-9_]+\\.cpp$")
  add_library(mh_${name} OBJECT ${sources})
  target_link_libraries(mh_${name} PUBLIC mh_flags ${MH_FMT} Threads::Threads)
  target_compile_options(mh_${name} PRIVATE -fno-semantic-interposition)
  set_target_properties(mh_${name} PROPERTIES VISIBILITY_INLINES_HIDDEN ON)
  mh_together(mh_${name})
  foreach(below ${arg_DEPENDS})
    target_link_libraries(mh_${name} PUBLIC mh_${below})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MH_LAYERS mh_${name})
endfunction()

# mh_isa(layer avx2 FLAGS …): adds isa/isa_avx2.cpp to the layer, unless MH_WITHOUT_RUNGS names it, compiled with those flags
# whatever the build type: a rung at -O0 leaves weak symbols that carry its instruction set. Sanitizers get -O1, and what to
# inline is left to the compiler (rung_headers.h): they must not take an hour to compile. Nor do they watch the scopes of a
# rung's local variables, thousands of inlined vectors: half of AddressSanitizer's compile time (42 s to 24 s a rung, GCC 12,
# 2026-11); nor ask before each access whether the pointer is null or wrapped around, which AddressSanitizer reports when it
# comes to the access (a third: 90 s to 65 s, the twin of AMX). Everywhere else they do both.
# GCC 12 takes the undefined vectors of its own AVX-512 headers for uninitialised ones.
function(mh_isa layer rung)
  cmake_parse_arguments(arg "" "" "FLAGS" ${ARGN})
  string(REGEX REPLACE "_rows$" "" whole ${rung})
  if(whole IN_LIST MH_WITHOUT_RUNGS)
    string(TOUPPER ${whole} whole)
    set_property(SOURCE dispatch.cpp APPEND PROPERTY COMPILE_DEFINITIONS MH_WITHOUT_${whole})
    return()
  endif()
  set(optimise -O3)
  if(MH_SANITIZE)
    set(optimise -O1 -fno-sanitize-address-use-after-scope -fno-sanitize=null,pointer-overflow)
  endif()
  # No rung calls fmt: seen as in the release build, the package's are the same to a compiler's cache.
  if(MH_PYTHON)
    list(APPEND optimise -UFMT_HEADER_ONLY -DFMT_SHARED)
  endif()
  if(MH_RUNG_LAUNCHER AND NOT MH_SANITIZE)
    set_target_properties(mh_${layer} PROPERTIES CXX_COMPILER_LAUNCHER ${MH_RUNG_LAUNCHER})
  endif()
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/isa/isa_${rung}.cpp)
  target_sources(mh_${layer} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
    "${optimise};-fno-math-errno;-Wno-uninitialized;-Wno-maybe-uninitialized;-DHWY_COMPILE_ONLY_STATIC;${arg_FLAGS}")
endfunction()

# mh_test(name sources…): a GoogleTest binary, every case a ctest. Its own code is compiled to be compiled fast: the
# time of a test is spent in the library. Sanitized too: at -O1 a test takes half as long again to compile (3.5 s to 5.4 s of
# CPU time under AddressSanitizer, each alone).
function(mh_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE multihead_inside rapidcheck GTest::gtest GTest::gtest_main
    nlohmann_json::nlohmann_json)
  target_compile_definitions(${name} PRIVATE MH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  target_compile_options(${name} PRIVATE -O0)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()
