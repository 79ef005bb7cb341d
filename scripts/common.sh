# Shared by ./run and the scripts beside this file: messages, packages, configuring, building. Sourced from the
# project's root; starts nothing.

build_packages=(cmake ninja-build g++ ccache libabsl-dev libspdlog-dev libfmt-dev libgtest-dev
  libgmock-dev libhwloc-dev libpng-dev libjpeg62-turbo-dev libcli11-dev nlohmann-json3-dev python3)
test_packages=(gdb universal-ctags)  # what else ./run test needs
bench_packages=(libtbb-dev)  # what host devices are compared with
check_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev universal-ctags)
docs_packages=(doxygen python3-markdown-it python3-pygments chromium fonts-dejavu-core)

jobs=$(nproc)
timings=()  # "seconds what", in the order done
results=()  # "what: line" for the closing summary

say() { printf '== %s\n' "$*"; }
complain() { printf './run: %s\n' "$*" >&2; }
cannot() { complain "$*"; exit 2; }
usage_error() { complain "$*; ./run --help lists what there is"; exit 2; }

# timed WHAT COMMAND...: runs it and remembers how long it took. Errors inside do not stop the script by themselves; the
# caller sees the exit code.
timed() {
  local what=$1 start=$SECONDS code=0
  shift
  "$@" || code=$?
  timings+=("$((SECONDS - start)) $what")
  return "$code"
}

summary() {
  local line
  say "$1: time"
  for line in ${timings[@]+"${timings[@]}"}; do printf '   %4d s  %s\n' "${line%% *}" "${line#* }"; done
  for line in ${results[@]+"${results[@]}"}; do say "$line"; done
}

# --- packages ---------------------------------------------------------------------------------------------------------

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -q '^installed$'; }

# Installs what is missing of the named Debian packages, or says what to do and exits 2.
need_packages() {
  local missing=() package sudo=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    local tool absent=()
    for tool in cmake ninja g++; do command -v "$tool" >/dev/null || absent+=("$tool"); done
    [[ ${#absent[@]} -eq 0 ]] || cannot "not found: ${absent[*]}. There is no apt here; install by your system's means what Debian calls: $*"
    say "no apt here: taking for granted what Debian calls $*"
    return
  fi
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    sudo -n true 2>/dev/null || cannot "missing packages, and no right to install them; run as root: apt-get install ${missing[*]}"
    sudo=(sudo -n)
  fi
  say "installing with apt: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { ${sudo[@]+"${sudo[@]}"} apt-get update &&
         ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    cannot "apt could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

# --- CUDA -------------------------------------------------------------------------------------------------------------

# Sets nvcc; false where there is none. The same places as cmake/PenstockCuda.cmake.
find_nvcc() {
  local candidate
  for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" \
                   /usr/local/cuda/bin/nvcc; do
    if [[ -n $candidate && -x $candidate ]]; then
      nvcc=$candidate
      return 0
    fi
  done
  return 1
}

has_gpu() { [[ -e /dev/nvidiactl ]] || nvidia-smi -L >/dev/null 2>&1; }

announce_cuda() {
  if ! find_nvcc; then
    say "no nvcc: the CUDA parts are left out"
  elif ! has_gpu; then
    say "nvcc but no GPU: the CUDA driver is built, the programs that nvcc compiles are left to ./run gpu-build"
  else
    say "nvcc and a GPU: the CUDA parts are included"
  fi
}

# What to add to a configuration so that tests that nvcc compiles are built where they can run.
cuda_programs_here() {
  if find_nvcc && has_gpu; then echo -DPENSTOCK_BUILD_CUDA_PROGRAMS=ON; else echo -DPENSTOCK_BUILD_CUDA_PROGRAMS=OFF; fi
}

# --- building ---------------------------------------------------------------------------------------------------------

# The folder of a preset.
folder() { if [[ $1 == cuda ]]; then echo build/gpu; else echo "build/$1"; fi; }

# The compiler cache, where there is one: shared between presets and checkouts, and able to see through precompiled
# headers.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
}

# quietly LOG COMMAND...: its output goes to LOG and is shown only if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    complain "failed: $*; all of its output is in $log"
    return 1
  fi
}

# configure PRESET [OPTION...]
configure() {
  local preset=$1
  shift
  use_ccache
  timed "configure $preset" quietly "$(folder "$preset")/configure.log" cmake --preset "$preset" "$@"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  say "building $preset ${*:-(all)}"
  timed "build $preset" quietly "$(folder "$preset")/build.log" ninja -C "$(folder "$preset")" -j "$jobs" "$@"
}
