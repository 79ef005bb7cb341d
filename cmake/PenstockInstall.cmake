# The install tree: the headers of include/, the library, its CMake package, penstock.pc and, in a static build with CUDA,
# a copy of libcudart_static.a, so that a consumer needs neither nvcc nor CUDA headers nor the toolkit's CMake package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(penstock_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(DIRECTORY include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS penstock EXPORT penstockTargets)
if(PENSTOCK_BUILD_COMMAND)
  install(TARGETS penstock_command RUNTIME)
endif()
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION ${penstock_package_dir})

set(PENSTOCK_INSTALLED_CUDART "")
if(PENSTOCK_HAS_CUDA AND NOT BUILD_SHARED_LIBS)
  set(PENSTOCK_INSTALLED_CUDART ${CMAKE_INSTALL_LIBDIR}/penstock/libcudart_static.a)
  install(FILES ${PENSTOCK_CUDART_STATIC} DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock RENAME libcudart_static.a)
endif()

configure_package_config_file(cmake/penstockConfig.cmake.in ${PROJECT_BINARY_DIR}/package/penstockConfig.cmake
                              INSTALL_DESTINATION ${penstock_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/penstockConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/penstockConfig.cmake ${PROJECT_BINARY_DIR}/package/penstockConfigVersion.cmake
              cmake/PenstockCudaSources.cmake DESTINATION ${penstock_package_dir})

# penstock.pc, for builds that ask pkg-config. What a static library needs stands in Requires and Libs, since nothing
# works without it; its paths follow from where the file lies.
set(PENSTOCK_PC_REQUIRES "absl_status absl_statusor")
set(PENSTOCK_PC_LIBS "-lpenstock")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND PENSTOCK_PC_REQUIRES
         " absl_strings absl_str_format absl_span absl_inlined_vector absl_btree absl_flat_hash_map absl_flat_hash_set")
  if(PENSTOCK_INSTALLED_CUDART)
    string(APPEND PENSTOCK_PC_LIBS " -L\${libdir}/penstock -lcudart_static")
  endif()
  string(APPEND PENSTOCK_PC_LIBS " -l:libhwloc.so.15 -lpthread -ldl -lrt")
endif()
set(penstock_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH PENSTOCK_PC_PREFIX /${penstock_pc_dir} /)
configure_file(cmake/penstock.pc.in ${PROJECT_BINARY_DIR}/package/penstock.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/penstock.pc DESTINATION ${penstock_pc_dir})
