# One small function per kind of target. Programs land in bin/<kind>/ of the build folder.

# Warnings, for this target only.
function(penstock_warnings target)
  set(cxx -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wimplicit-fallthrough)
  set(cuda_host -Wall,-Wextra)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND cxx -Wshadow -Wthread-safety)
  else()
    list(APPEND cxx -Wshadow=local)  # all of g++'s -Wshadow takes enumerators of an enum class for declarations
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND cxx -Wno-restrict -Wno-stringop-overread)  # wrong about std::string at -O3
  endif()
  if(PENSTOCK_WERROR)
    list(APPEND cxx -Werror)
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${cxx}>"
    # 2810: nvcc takes an assignment to a Status for a dropped one; the C++ compilers find those that are.
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_host};-diag-suppress=2810>")
endfunction()

# Compiles `batch` of a target's C++ sources at a time, since most of a compilation goes into headers and templates that
# all of them use. So what is in an unnamed namespace must not be named twice in the library; each test file has a
# namespace of its own. Sources with options of their own are left alone. CMake's own batches name their sources by
# absolute paths (before CMake 4), and so no compiler cache knows them again in another clone.
function(penstock_unity target batch)
  if(NOT PENSTOCK_UNITY)
    return()
  endif()
  get_target_property(all ${target} SOURCES)
  list(FILTER all INCLUDE REGEX "^[^$]+[.]cc$")
  set(sources)
  foreach(source IN LISTS all)
    set(alone)
    foreach(property LANGUAGE COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES SKIP_UNITY_BUILD_INCLUSION)
      get_source_file_property(own ${source} TARGET_DIRECTORY ${target} ${property})
      if(own AND NOT own STREQUAL "CXX")
        set(alone ON)
      endif()
    endforeach()
    if(NOT alone)
      list(APPEND sources ${source})
    endif()
  endforeach()
  penstock_batches(batches ${target} cc ${batch} ${sources})
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
  target_sources(${target} PRIVATE ${batches})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which takes the sources for headers
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-subobject-linkage>)
  endif()
endfunction()

# Sets `out` to what stands for the sources, files `name`_N.`extension` that include up to `size` of them each.
function(penstock_batches out name extension size)
  set(batches)
  set(left ${ARGN})
  while(left)
    list(SUBLIST left 0 ${size} batch)
    list(REMOVE_ITEM left ${batch})
    set(text)
    foreach(source IN LISTS batch)
      cmake_path(ABSOLUTE_PATH source)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    list(LENGTH batches number)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_${number}.${extension})
    file(GENERATE OUTPUT ${file} CONTENT "${text}")
    list(APPEND batches ${file})
  endwhile()
  set(${out} ${batches} PARENT_SCOPE)
endfunction()

# Sources of `target`, in this folder, that declare device functors: with CUDA programs they are compiled by nvcc whatever
# their ending, else by the C++ compiler.
function(penstock_kernels target)
  if(PENSTOCK_CUDA_PROGRAMS AND ARGN)
    penstock_cuda_sources(${target} ${ARGN})
  endif()
endfunction()

# A program of `SOURCES` and `KERNELS` (see penstock_kernels).
function(penstock_program name kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;KERNELS;LIBRARIES")
  add_executable(${name} ${arg_SOURCES} ${arg_KERNELS})
  target_link_libraries(${name} PRIVATE penstock::penstock ${arg_LIBRARIES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  penstock_kernels(${name} ${arg_KERNELS})
  penstock_warnings(${name})
  set_target_properties(${name} PROPERTIES
    CXX_EXTENSIONS OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/${kind})
endfunction()

# The preset cuda takes -O3 from the build type's options and gives it to examples and benchmarks here: nvcc warns of a
# second -O, and the tests' host code takes half the time to compile without any.
function(penstock_optimize_kernels name)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${PENSTOCK_CUDA_OPTIMIZATION}>)
endfunction()

# An example sees include/ and its own folder, nothing else.
function(penstock_example name)
  penstock_program(${name} examples ${ARGN})
  penstock_optimize_kernels(${name})
endfunction()

# An example of one source without libraries of its own. `run_NAME` of the caller becomes what runs it.
#
# With PENSTOCK_EXAMPLES_TOGETHER and CUDA programs all of these become one program, small_examples, whose first argument
# is the name of the one to run (--list names them all): nvcc reads the headers three times for each source, which is
# nearly all of its 14 s.
# Each source is included in a namespace of its name, its `main` with it, behind the headers that it includes.
function(penstock_small_example name source)
  if(NOT (PENSTOCK_EXAMPLES_TOGETHER AND PENSTOCK_CUDA_PROGRAMS))
    penstock_example(${name} KERNELS ${source})
    set(run_${name} $<TARGET_FILE:${name}> PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${source} includes REGEX "^#include")
  set_property(DIRECTORY APPEND PROPERTY penstock_together_includes ${includes})
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})  # as in penstock_unity, for the cache
  set_property(DIRECTORY APPEND_STRING PROPERTY penstock_together_sources
    "namespace ${name} {\n#include \"${path}\"\n}\n")
  set_property(DIRECTORY APPEND PROPERTY penstock_together_names ${name})
  cmake_path(GET path PARENT_PATH folder)
  set_property(DIRECTORY APPEND PROPERTY penstock_together_folders ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  set_property(DIRECTORY APPEND_STRING PROPERTY penstock_together_calls
    "  if (name == \"${name}\") return Call(&${name}::main, argc - 1, argv + 1);\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  set(run_${name} $<TARGET_FILE:small_examples> ${name} PARENT_SCOPE)
endfunction()

# Behind the last of them.
function(penstock_small_examples_end)
  get_property(includes DIRECTORY PROPERTY penstock_together_includes)
  if(NOT includes)
    return()
  endif()
  get_property(sources DIRECTORY PROPERTY penstock_together_sources)
  get_property(calls DIRECTORY PROPERTY penstock_together_calls)
  get_property(names DIRECTORY PROPERTY penstock_together_names)
  list(JOIN names "\\n" names)
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/small_examples.cu)
  file(GENERATE OUTPUT ${file} CONTENT "${includes}
#include <cstdio>
#include <string_view>

${sources}
int Call(int (*program)(), int, char**) { return program(); }
int Call(int (*program)(int, char**), int argc, char** argv) { return program(argc, argv); }

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : \"\";
${calls}  if (name == \"--list\") std::puts(\"${names}\");
  return name == \"--list\" ? 0 : 2;
}
")
  penstock_program(small_examples examples KERNELS ${file})  # not optimized, since it measures nothing
  get_property(folders DIRECTORY PROPERTY penstock_together_folders)
  list(REMOVE_DUPLICATES folders)
  target_include_directories(small_examples PRIVATE ${folders})
endfunction()

# A benchmark sees include/ and its own folder, nothing else. With the tests on, `--quick` of it is one of them.
function(penstock_bench name)
  penstock_program(${name} bench ${ARGN})
  penstock_optimize_kernels(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  if(PENSTOCK_BUILD_TESTS)
    add_test(NAME bench.${name} COMMAND ${name} --quick)
    set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 300 RUN_SERIAL ON)
  endif()
endfunction()

# A test program with GoogleTest's main, seeing everything from the project's root. `LABEL` is cpu, conformance or gpu:
# `ctest -L cpu`. ctest runs it as `SHARDS` processes, each of which has its part of the tests: a process for each test
# would cost more than the test. Each leaves its results in tests/results/. `CUDA_HEADERS`: its C++ sources may include
# them. `BRUTE_FORCE`: the tests themselves take the time, and are optimized as the library is.
function(penstock_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CUDA_HEADERS;BRUTE_FORCE" "LABEL;SHARDS" "SOURCES;KERNELS;LIBRARIES")
  if(PENSTOCK_UNITY AND PENSTOCK_CUDA_PROGRAMS)
    set(alone)
    foreach(source IN LISTS arg_KERNELS)
      get_source_file_property(own ${source} SKIP_UNITY_BUILD_INCLUSION)
      if(own)
        list(APPEND alone ${source})
      endif()
    endforeach()
    if(alone)
      list(REMOVE_ITEM arg_KERNELS ${alone})
      penstock_batches(alone ${name}_alone cu 1 ${alone})
    endif()
    math(EXPR batch "(${PENSTOCK_TEST_BATCH} * 2 + 2) / 3")
    penstock_batches(arg_KERNELS ${name}_kernels cu ${batch} ${arg_KERNELS})
    list(APPEND arg_KERNELS ${alone})
  endif()
  penstock_program(${name} tests SOURCES ${arg_SOURCES} $<TARGET_OBJECTS:penstock_test_status> KERNELS ${arg_KERNELS} LIBRARIES
                   absl::strings absl::str_format absl::flat_hash_map absl::flat_hash_set absl::span ${arg_LIBRARIES}
                   GTest::gmock GTest::gtest_main)
  if(NOT arg_BRUTE_FORCE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PENSTOCK_TEST_OPTIONS}>)
  endif()
  penstock_unity(${name} ${PENSTOCK_TEST_BATCH})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  if(PENSTOCK_HAS_CUDA)
    target_compile_definitions(${name} PRIVATE PENSTOCK_HAS_CUDA=1 $<$<BOOL:${PENSTOCK_HAS_NVTX}>:PENSTOCK_HAS_NVTX=1>)
  endif()
  if(arg_CUDA_HEADERS AND PENSTOCK_HAS_CUDA)
    target_include_directories(${name} SYSTEM PRIVATE ${PENSTOCK_CUDA_INCLUDE_DIRS})
  endif()
  if(arg_SOURCES AND NOT arg_BRUTE_FORCE)  # headers are precompiled with the options of the others
    penstock_precompile(${name})
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(test ${name}.${shard})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 400 ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/tests/results/${test}.xml")
  endforeach()
endfunction()

# GoogleTest and Abseil, precompiled once for all test programs. Clang's precompiled headers are different ones in each
# checkout, so the compiler cache would find nothing of another one.
function(penstock_precompile name)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(cacheable -fpch-preprocess)  # what ccache needs to see through a precompiled header
  if(NOT TARGET penstock_test_headers)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/penstock_test_headers.cc CONTENT "")
    add_library(penstock_test_headers OBJECT ${PROJECT_BINARY_DIR}/penstock_test_headers.cc)
    target_link_libraries(penstock_test_headers PRIVATE absl::status absl::statusor absl::strings absl::flat_hash_map
                          GTest::gmock GTest::gtest)
    target_compile_features(penstock_test_headers PRIVATE cxx_std_20)
    set_target_properties(penstock_test_headers PROPERTIES CXX_EXTENSIONS OFF)
    penstock_warnings(penstock_test_headers)
    target_compile_options(penstock_test_headers PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cacheable}>" ${PENSTOCK_TEST_OPTIONS})
    target_precompile_headers(penstock_test_headers PRIVATE
      <gmock/gmock.h> <gtest/gtest.h> <absl/container/flat_hash_map.h> <absl/status/statusor.h>
      <absl/strings/str_cat.h> <atomic> <functional> <memory> <string> <thread> <vector>)
  endif()
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cacheable}>")
  target_precompile_headers(${name} REUSE_FROM penstock_test_headers)
endfunction()
