# Shared by ./run and the scripts beside this file: messages, progress, packages, configuring, building. Sourced from the
# project's root; starts nothing.

demo_packages=(cmake ninja-build g++ ccache libabsl-dev libspdlog-dev libfmt-dev libhwloc-dev)
build_packages=("${demo_packages[@]}" libgtest-dev libgmock-dev libpng-dev libjpeg62-turbo-dev libcli11-dev
  nlohmann-json3-dev python3 xz-utils)
test_packages=(gdb universal-ctags)  # what else the tests of scripts need
browser_packages=(chromium chromium-driver)  # without them nobody looks at the report's page
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

# --- progress ---------------------------------------------------------------------------------------------------------

on_terminal() { [[ -t 1 && ${TERM:-dumb} != dumb ]]; }

# show_progress WHAT LOG: one line of the terminal with the time and the last line of LOG, until it is killed or this
# script has gone.
show_progress() {
  local what=$1 log=$2 start=$SECONDS columns line
  while kill -0 $$ 2>/dev/null; do
    columns=$(tput cols 2>/dev/null) || columns=80
    # Of ninja's lines the numbers and the file's name.
    line="== $what, $((SECONDS - start)) s  $(tail -n 1 "$log" | tr -d '\000-\037' | sed -E 's#^(\[[0-9/]+\]) .*[ /]#\1 #')"
    printf '\r\033[K%s' "${line:0:columns-1}"
    sleep 0.5
  done
}

# with_progress WHAT LOG COMMAND...: its output goes to LOG. On a terminal a line moves meanwhile, elsewhere one line says
# what has begun.
with_progress() {
  local what=$1 log=$2 start=$SECONDS code=0 watcher
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  if ! on_terminal; then
    say "$what"
    "$@" >"$log" 2>&1
    return
  fi
  show_progress "$what" "$log" &
  watcher=$!
  trap 'kill "$watcher"; echo; exit 130' INT
  "$@" >"$log" 2>&1 || code=$?
  trap - INT
  kill "$watcher"
  wait "$watcher" 2>/dev/null || true
  printf '\r\033[K'
  say "$what: $((SECONDS - start)) s"
  return "$code"
}

# step WHAT LOG COMMAND...: with progress; the end of LOG is shown if it fails.
step() { with_progress "$@" || failed "${@:2}"; }

# quietly LOG COMMAND...: the same without progress.
quietly() {
  mkdir -p "$(dirname "$1")"
  "${@:2}" >"$1" 2>&1 || failed "$@"
}

# failed LOG COMMAND...
failed() {
  tail -n 60 "$1" >&2
  complain "failed: ${*:2}; all of its output is in $1"
  return 1
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
  say "packages that are missing: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! with_progress "installing ${#missing[@]} packages with apt" "$log" apt_install "${missing[@]}"; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    cannot "apt could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

# Installs what it can, and goes on without the rest.
want_packages() { (need_packages "$@") || say "going on without: $*"; }

# Of need_packages, whose `sudo` it uses.
apt_install() {
  ${sudo[@]+"${sudo[@]}"} apt-get update &&
    ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
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

# What to add to a configuration, one line an option, so that what nvcc compiles for tests is built where they can run.
cuda_programs_here() {
  local here=OFF
  if find_nvcc && has_gpu; then here=ON; fi
  printf -- '-DPENSTOCK_BUILD_%s=%s\n' CUDA_PROGRAMS $here ALGORITHMS $here
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

# configure PRESET [OPTION...]
configure() {
  local preset=$1
  shift
  use_ccache
  timed "configure $preset" step "configuring $preset" "$(folder "$preset")/configure.log" cmake --preset "$preset" "$@"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  timed "build $preset" step "building $preset ${*:-(all)}" "$(folder "$preset")/build.log" \
    ninja -C "$(folder "$preset")" -j "$jobs" "$@"
}
