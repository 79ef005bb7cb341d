# Compiles the given .cu files of this folder with nvcc, host code and kernels, and adds the objects to `target`. nvcc is
# called as a tool, as for the kernel image, so the library does not need the language CUDA. The host code, which runs
# once but for sorts, is optimized a little. Several files are compiled at a time, since nvcc reads the headers three times
# for each.
function(penstock_cuda_objects target)
  penstock_arch_options(arch ${PENSTOCK_CUDA_ARCHITECTURES})
  set(includes $<FILTER:$<TARGET_PROPERTY:absl::statusor,INTERFACE_INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>)
  set(host -O1,-fPIC,-fvisibility=hidden,-fvisibility-inlines-hidden)
  if(CMAKE_CUDA_HOST_COMPILER)
    list(APPEND arch -ccbin ${CMAKE_CUDA_HOST_COMPILER})
  elseif(DEFINED ENV{CUDAHOSTCXX})
    list(APPEND arch -ccbin $ENV{CUDAHOSTCXX})
  endif()
  set(launcher ${CMAKE_CUDA_COMPILER_LAUNCHER})
  if(NOT launcher)
    set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(objects)
  penstock_batches(units ${target}_algorithms cu 4 ${ARGN})
  foreach(source IN LISTS units)
    cmake_path(GET source STEM name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${launcher} ${PENSTOCK_NVCC} -c -std=c++20 -DNDEBUG --compress-mode=size ${arch} -Xcompiler=${host}
              -diag-suppress=2810 -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
              "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>" -MD -MF ${object}.d -o ${object} ${source}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${name}" VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND objects ${object})
  endforeach()
  # `target` is made in another folder, where the commands above are unknown: the extra target orders the two.
  add_custom_target(${target}_cuda_objects DEPENDS ${objects})
  add_dependencies(${target} ${target}_cuda_objects)
  set_source_files_properties(${objects} TARGET_DIRECTORY ${target} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${objects})
endfunction()
