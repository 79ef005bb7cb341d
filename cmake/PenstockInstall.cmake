# The install tree: the headers of include/, the library, its CMake package and, in a static build with CUDA, a copy of
# libcudart_static.a, so that a consumer needs neither nvcc nor CUDA headers nor the toolkit's CMake package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(penstock_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(DIRECTORY include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS penstock EXPORT penstockTargets)
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
        DESTINATION ${penstock_package_dir})
