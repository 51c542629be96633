# mh_layer(): one folder, one target.  mh_isa(): one rung, one translation unit with its flags.  mh_test(): one test binary.

add_library(mh_flags INTERFACE)
target_include_directories(mh_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(mh_flags INTERFACE -Wall -Wextra -Wno-psabi)

# mh_layer(base DEPENDS …): object library of every source directly in the folder.
function(mh_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/isa_[a-z0-9_]+\\.cpp$")
  add_library(mh_${name} OBJECT ${sources})
  target_link_libraries(mh_${name} PUBLIC mh_flags fmt::fmt Threads::Threads)
  foreach(below ${arg_DEPENDS})
    target_link_libraries(mh_${name} PUBLIC mh_${below})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MH_LAYERS mh_${name})
endfunction()

# mh_isa(layer avx2 FLAGS …): adds isa_avx2.cpp to the layer, compiled with those flags.
# -fno-math-errno and -ffp-contract=off: contraction is written by hand, so a formula has one rounding everywhere.
function(mh_isa layer rung)
  cmake_parse_arguments(arg "" "" "FLAGS" ${ARGN})
  target_sources(mh_${layer} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/isa_${rung}.cpp)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/isa_${rung}.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-fno-math-errno;-ffp-contract=off;-DHWY_COMPILE_ONLY_STATIC;-fno-exceptions;${arg_FLAGS}")
endfunction()

# mh_test(name sources… ): a GoogleTest binary, every case a ctest.
function(mh_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE multihead_objects GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
