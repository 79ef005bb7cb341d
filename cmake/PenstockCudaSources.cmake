# penstock_cuda_sources: installed with the CMake package, and what Penstock's own programs are built with.

# Sets `out` to the architectures that somebody has named; empty if CMake has none, or only those it has guessed, which
# are the oldest that nvcc knows. CMake's cache entry of a guess has the same help as one made of CUDAARCHS.
function(penstock_named_architectures out)
  get_property(help CACHE CMAKE_CUDA_ARCHITECTURES PROPERTY HELPSTRING)
  if(help STREQUAL "CUDA architectures" AND NOT DEFINED PENSTOCK_FIRST_CUDAARCHS)
    set(PENSTOCK_FIRST_CUDAARCHS "$ENV{CUDAARCHS}" CACHE INTERNAL "CUDAARCHS when CMake chose architectures")
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(${out} $ENV{CUDAARCHS} PARENT_SCOPE)
  elseif(help STREQUAL "CUDA architectures" AND NOT PENSTOCK_FIRST_CUDAARCHS
         AND CMAKE_CUDA_ARCHITECTURES STREQUAL "$CACHE{CMAKE_CUDA_ARCHITECTURES}")
    set(${out} PARENT_SCOPE)
  else()
    set(${out} ${CMAKE_CUDA_ARCHITECTURES} PARENT_SCOPE)
  endif()
endfunction()

# penstock_cuda_sources(target file...): adds the files, of the calling folder, to `target` unless it has them, and
# compiles them with nvcc, whatever their ending, as C++20. The target gets the static CUDA runtime unless another is
# chosen, and the architectures of Penstock's own kernels unless others are named.
function(penstock_cuda_sources target)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "penstock_cuda_sources: there is no target '${target}'; call add_executable or add_library first")
  elseif(NOT "CUDA" IN_LIST languages)
    message(FATAL_ERROR "penstock_cuda_sources(${target}): the language CUDA is not enabled; write "
                        "project(... LANGUAGES CXX CUDA), or leave the call out in builds for host devices only")
  endif()
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    target_sources(${target} PRIVATE ${file})
    set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CUDA)
  endforeach()

  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(${target} PRIVATE cuda_std_20)
  else()  # CMake 3.25 does not know that nvcc 13 has it, and drops CMAKE_CUDA_STANDARD 20 without a word
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
  get_target_property(runtime ${target} CUDA_RUNTIME_LIBRARY)
  if(NOT runtime)
    set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  endif()
  penstock_named_architectures(named)
  get_target_property(architectures ${target} CUDA_ARCHITECTURES)
  get_target_property(own penstock::penstock PENSTOCK_CUDA_ARCHITECTURES)
  if(NOT named AND own AND (NOT architectures OR architectures STREQUAL CMAKE_CUDA_ARCHITECTURES))
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${own}")
  endif()
endfunction()
