#!/usr/bin/env bash
# Builds and runs the user projects of tests/consumers: find_package on an install tree of the static library,
# penstock_cuda_sources where there is an nvcc, add_subdirectory, and the bare install tree of the shared library, whose
# exports are checked too; and one source with the flags of pkg-config, for both libraries. Then a program that loads and
# unloads plugins which declare parts of its graph.
#
#   scripts/check_consumers.sh PRESET BUILD     BUILD: the folder of PRESET, where the static library is built already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh
use_ccache

preset=$1 static_build=$2
work=$PWD/build/consumer
type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$static_build/CMakeCache.txt")
flags=$(sed -n "s/^CMAKE_CXX_FLAGS_${type^^}:[A-Z]*=//p" "$static_build/CMakeCache.txt")
version=$(sed -n 's/.*PENSTOCK_VERSION "\([0-9]*\.[0-9]*\).*/\1/p' include/penstock/version.h)
# Builds lie as deep as BUILD, which makes their compiler calls equal to its own for the compiler cache.
rm -rf "$work" "$work"-*
mkdir -p "$work"

# Configures, builds and runs tests/consumers/$1; the rest are options of CMake. Compiled as the library is, in
# `environment`, and without the packages that only the library's own build may need.
consume() {
  local name=$1
  shift
  quietly "$work/$name.log" "${environment[@]}" \
    cmake -S "tests/consumers/$name" -B "$work-$name" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE="$type" \
    "-DCMAKE_CXX_FLAGS_${type^^}=$flags" "$@"
  quietly "$work/$name.log" ninja -C "$work-$name" -j "$jobs"
  quietly "$work/$name.log" "$(find "$work-$name" -name consumer -type f -perm -u+x)"
  echo "consumer $name builds and runs"
}

path_without_nvcc() {
  local folder path=
  while IFS= read -r -d : folder; do
    [[ -x $folder/nvcc ]] || path+=${path:+:}$folder
  done <<<"$PATH:"
  echo "$path"
}

environment=(env -u CUDACXX -u CUDA_HOME -u CUDA_PATH PATH="$(path_without_nvcc)")

# A source that nvcc compiles, so that its functor is a kernel, with the CUDA runtime in the program.
check_cuda_sources() {
  local environment=(env -u CUDAARCHS CUDACXX="$nvcc") program=$work-cuda_sources/consumer
  consume cuda_sources "$@"
  nm -C "$program" | grep ParallelForKernel >/dev/null || { echo "$program has no kernel"; return 1; }
  ! ldd "$program" | grep libcudart || { echo "$program needs a shared CUDA runtime"; return 1; }
}

# check_pkg_config LIBRARY: compiles, with what pkg-config says about the install tree of LIBRARY, and runs.
check_pkg_config() {
  local flags program=$work/pkg_config_$1
  flags=$(PKG_CONFIG_PATH=$work/$1/lib/pkgconfig pkg-config --cflags --libs penstock)
  # shellcheck disable=SC2086
  quietly "$program.log" g++ -std=c++20 tests/consumers/consumer.cc -o "$program" $flags -Wl,-rpath,"$work/$1/lib"
  quietly "$program.log" "$program"
  echo "a consumer compiled with pkg-config's flags runs, with the $1 library"
}

# Fails if an installed CMake package asks for what users need not have.
package_is_modest() {
  local found
  found=$(grep -rniE 'spdlog|fmt::|CUDAToolkit|CUDA::' "$1/lib/cmake/penstock" "$1/lib/pkgconfig" | grep -v ':#' || true)
  [[ -z $found ]] || { echo "the installed package names what users need not have:"; echo "$found"; return 1; }
  found=$(cd "$1/include" && find . -type f ! -path './penstock/*.h')
  [[ -z $found ]] || { echo "installed, but no header of include/penstock: $found"; return 1; }
}

# The program and plugins of tests/consumers/objects. The first two plugins, one of clang without RTTI where there is
# clang, are compiled with hidden visibility and loaded globally; the third is compiled as compilers do by themselves.
check_plugins() {
  local from=tests/consumers/objects to=$work/objects part other=g++ name
  local compile=(-std=c++20 -O1 -fPIC -I"$work/shared/include" -c) absl cache=()
  absl=$(pkg-config --libs absl_status absl_statusor absl_strings absl_str_format absl_flat_hash_map absl_btree)
  command -v clang++-19 >/dev/null && other=clang++-19
  command -v ccache >/dev/null && cache=(ccache)
  mkdir -p "$to"
  local one=(${cache[@]+"${cache[@]}"} g++ "${compile[@]}") two=(${cache[@]+"${cache[@]}"} "$other" "${compile[@]}")
  quietly "$to/a.log" "${one[@]}" -fvisibility=hidden -DADDS=1 -DPART='"a "' "$from/part.cc" -o "$to/a.o" &
  quietly "$to/b.log" "${two[@]}" -fvisibility=hidden -fno-rtti -DADDS=10 -DPART='"b "' "$from/part.cc" -o "$to/b.o" &
  quietly "$to/c.log" "${one[@]}" -DADDS=100 -DPART='"c "' "$from/part.cc" -o "$to/c.o" &
  quietly "$to/main.log" "${one[@]}" "$from/main.cc" -o "$to/main.o" &
  wait
  for part in a b c; do
    # shellcheck disable=SC2086
    quietly "$to/$part.log" g++ -shared "$to/$part.o" -o "$to/$part.so" $absl
    if nm -D -C "$to/$part.so" | grep ' u '; then
      echo "unique symbols: $to/$part.so could not be unloaded"
      return 1
    fi
  done
  # shellcheck disable=SC2086
  quietly "$to/main.log" g++ "$to/main.o" -o "$to/shared" -L"$work/shared/lib" -lpenstock \
    -Wl,-rpath,"$work/shared/lib" $absl -ldl
  # shellcheck disable=SC2046,SC2086
  quietly "$to/main.log" g++ -rdynamic "$to/main.o" -o "$to/static" -Wl,--whole-archive "$work/static/lib/libpenstock.a" \
    -Wl,--no-whole-archive $(find "$work/static/lib/penstock" -name '*.a' 2>/dev/null) $absl -lhwloc -ldl -lrt -lpthread
  for name in shared static; do
    "$to/$name" "$to/a.so" "$to/b.so" "$to/c.so"
    echo "a program with plugins runs, with the $name library"
  done
}

without_developer_packages=(-DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON --no-warn-unused-cli)

# Installed, then moved: nothing may remember the first place.
quietly "$work/install.log" cmake --install "$static_build" --prefix "$work/first"
mv "$work/first" "$work/static"
package_is_modest "$work/static"
"$work/static/bin/penstock" version
consume find_package -DCMAKE_PREFIX_PATH="$work/static" "${without_developer_packages[@]}"
check_pkg_config static
if find_nvcc; then
  check_cuda_sources -DCMAKE_PREFIX_PATH="$work/static" "${without_developer_packages[@]}"
else
  echo "no nvcc: penstock_cuda_sources is not checked"
fi

# Without CUDA, which nothing else here builds on a machine that has it. No object is that of another build, so the
# compiler is the faster one.
faster=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DPENSTOCK_UNITY_BATCH=28)
command -v clang++-19 >/dev/null && faster+=(-DCMAKE_CXX_COMPILER=clang++-19)
consume add_subdirectory -DPENSTOCK_SOURCE="$PWD" -DPENSTOCK_CUDA=OFF -DPENSTOCK_WERROR=ON "${faster[@]}"

# The objects are those of BUILD, so with a compiler cache this is a link.
quietly "$work/shared.log" cmake --preset "$preset" -B "$work-shared" -DBUILD_SHARED_LIBS=ON -DPENSTOCK_BUILD_TESTS=OFF \
  -DPENSTOCK_BUILD_EXAMPLES=OFF -DPENSTOCK_BUILD_BENCH=OFF
quietly "$work/shared.log" ninja -C "$work-shared" -j "$jobs"
quietly "$work/shared.log" cmake --install "$work-shared" --prefix "$work/shared"
package_is_modest "$work/shared"
consume install_tree -DPENSTOCK_PREFIX="$work/shared" "${without_developer_packages[@]}"
check_pkg_config shared
scripts/check_exports.sh "$work/shared/lib/libpenstock.so" "$version"
check_plugins
