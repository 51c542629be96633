# cmake --install: the library, its public headers, find_package(multihead) and pkg-config, the licence.
include(CMakePackageConfigHelpers)

install(TARGETS multihead EXPORT multihead
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT multihead NAMESPACE multihead:: FILE multihead-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)

# public_headers.txt is the one list of what users may include; tools/check_layers keeps it closed under #include.
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt public_headers REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
foreach(header ${public_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/multihead-config.cmake.in
  ${PROJECT_BINARY_DIR}/multihead-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/multihead-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/multihead-config.cmake ${PROJECT_BINARY_DIR}/multihead-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/multihead)

# The prefix is told from where the .pc file lies, so that `cmake --install --prefix` may choose it late.
file(RELATIVE_PATH MH_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(MH_PC_LIBS "-lmultihead")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND MH_PC_LIBS " -pthread -lsimdjson -licuuc -lpng -ljpeg -lz -llzma -lstdc++ -lm")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/multihead.pc.in ${PROJECT_BINARY_DIR}/multihead.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/multihead.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
