# Compiles the given .cu files of this folder into one device image and embeds it in `target` as
#   extern "C" const unsigned char penstock_kernels_fatbin[];
#   extern "C" const unsigned long penstock_kernels_fatbin_size;   // bytes
# The files are included into one translation unit, so their kernels need distinct names.
function(penstock_kernel_image target)
  penstock_arch_options(arch ${PENSTOCK_CUDA_ARCHITECTURES})
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/penstock_kernels.cu)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/penstock_kernels.fatbin)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/penstock_kernels.cc)

  set(text "")
  set(paths)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    list(APPEND paths ${source})
    string(APPEND text "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)

  add_custom_command(OUTPUT ${image}
    COMMAND ${PENSTOCK_NVCC} -fatbin -std=c++20 -O3 ${arch} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
            -MD -MF ${image}.d -o ${image} ${unit}
    DEPENDS ${unit} ${paths} DEPFILE ${image}.d
    COMMENT "Compiling the library's kernels" VERBATIM)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DBIN2C=${PENSTOCK_BIN2C} -DIMAGE=${image} -DOUTPUT=${embedded}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedImage.cmake
    DEPENDS ${image} ${PROJECT_SOURCE_DIR}/cmake/EmbedImage.cmake
    COMMENT "Embedding the library's kernels" VERBATIM)
  # `target` is made in another folder, where the command above is unknown: the extra target orders the two.
  add_custom_target(${target}_kernel_image DEPENDS ${embedded})
  add_dependencies(${target} ${target}_kernel_image)
  target_sources(${target} PRIVATE ${embedded})
  set_source_files_properties(${embedded} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
