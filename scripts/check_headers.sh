#!/usr/bin/env bash
# Compiles each public header alone as .cc with no CUDA headers within reach (those for CUDA and its libraries
# excepted); in the mode C++17 the first error must name the reason. Where there is an nvcc, its device pass compiles
# alone those headers that are different to it, and both its passes all of them together. Then compiles a file that
# instantiates their templates as users' builds do: by g++ and clang, as C++20 and C++23, without RTTI and exceptions,
# with checked Views, with warnings that users turn on as errors; and one whose arguments do not fit their callables,
# which errors must explain. What passed is remembered by the content of include/, in the user's cache, for all checkouts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

work=build/headers
passed=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/penstock-headers
mkdir -p "$work" "$passed"
find_nvcc || nvcc=

# Whether HEADER needs CUDA's headers.
needs_cuda() { [[ $(basename "$1") =~ cuda|cublas|cusolver|cufft ]]; }

# Whether nvcc reads something else in HEADER than g++ does.
differs_to_nvcc() { needs_cuda "$1" || grep -qE '__(CUDA|NVCC)' "$1"; }

# Whether the first error about UNIT, compiled as C++17, says that Penstock needs C++20.
names_its_language() {
  local errors
  errors=$(g++ -std=c++17 -fsyntax-only -Wfatal-errors -Iinclude "$1" 2>&1 | grep error || true)
  [[ ${errors%%$'\n'*} == *"Penstock needs C++20"* ]]
}

# one_header HEADER
one_header() {
  local header=$1 unit
  unit=$work/$(tr / _ <<<"${header%.h}")
  if ! needs_cuda "$header"; then
    # The guard keeps this honest on machines that have CUDA headers in the compiler's own path.
    printf '#include "%s"\n#if defined(__CUDA_RUNTIME_H__) || defined(__cuda_cuda_h__)\n#error includes CUDA headers\n#endif\n' \
      "${header#include/}" >"$unit.cc"
    g++ -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow=local -Wpedantic -Werror -Iinclude "$unit.cc" || return 1
    if [[ $header != */detail/* && $(basename "$header") != @(export|version).h ]] && ! names_its_language "$unit.cc"; then
      echo "as C++17 it does not say first that Penstock needs C++20: $header"
      return 1
    fi
  fi
  if [[ -n $nvcc ]] && differs_to_nvcc "$header"; then
    printf '#include "%s"\n' "${header#include/}" >"$unit.cu"
    "$nvcc" -std=c++20 -arch=compute_90 -Iinclude -ptx "$unit.cu" -o "$unit.ptx" || return 1
    rm -f "$unit.ptx"
  fi
}

templates=tests/consumers/every_template.cc
wrong=tests/consumers/wrong_arguments.cc
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
builds=()
for compiler in g++ clang++-19; do
  if command -v "$compiler" >/dev/null; then
    builds+=("$compiler -std=c++20" "$compiler -std=c++23" "$compiler -std=c++20 -fno-rtti -fno-exceptions -DPENSTOCK_CHECKED_VIEWS")
  fi
done

# one_build "COMPILER OPTION...": the templates. With CUDA's headers, where they are here, as system headers.
one_build() {
  local command
  read -ra command <<<"$1"
  [[ -z $nvcc ]] || command+=(-isystem "$(dirname "$nvcc")/../include")
  "${command[@]}" -fsyntax-only "${warnings[@]}" -Iinclude "$templates"
}

mapfile -t headers < <(find include -name '*.h' | sort)

# All of them together as one .cu, with the templates. Nobody runs its kernels, so they are not optimized.
all_headers() {
  printf '#include "%s"\n' "${headers[@]#include/}" "$templates" >"$work/all.cu"
  local host=-Wall,-Wextra,-Wconversion,-Wsign-conversion,-Wshadow,-fsyntax-only
  "$nvcc" -std=c++20 -arch=sm_90 --Ofast-compile=max -Werror all-warnings -Xcompiler=$host -Iinclude -I. -c "$work/all.cu" -o "$work/all.o"
}

if [[ ${1:-} == --one ]]; then
  one_header "$2" || { echo "does not compile alone: $2"; exit 1; }
  exit
fi
if [[ ${1:-} == --build ]]; then
  one_build "$2" || { echo "does not compile in a user's build by $2: $templates"; exit 1; }
  exit
fi

# The errors of g++ about the calls in $wrong, each line behind the number of the call's line.
errors_of_calls() {
  g++ -std=c++20 -fsyntax-only -Iinclude "$wrong" 2>&1 | awk -v from="$wrong" '
    function put() { for (i = 1; i <= n; ++i) if (call) print call "\t" held[i]; n = call = 0 }
    / In instantiation of / { put() }
    { held[++n] = $0 }
    index($0, from ":") == 1 && / required from here$/ { split(substr($0, length(from) + 2), at, ":"); call = at[1] }
    END { put() }'
}

# What $wrong does wrong is explained as it says there.
check_wrong() {
  local errors number=0 line wanted=() text
  errors=$(errors_of_calls || true)  # g++ fails
  while IFS= read -r line; do
    number=$((number + 1))
    if [[ $line == "  // "* ]]; then
      wanted+=("${line#*// }")
    elif [[ $line == "  g."* || $line == "  ps::"* ]]; then
      [[ ${#wanted[@]} -gt 0 ]] || { echo "$wrong:$number: no comment says what the errors should say"; return 1; }
      for text in "${wanted[@]}"; do
        grep -- "^$number"$'\t'".*$text" <<<"$errors" >/dev/null || { echo "$wrong:$number: no error says: $text"; return 1; }
      done
      wanted=()
    fi
  done <"$wrong"
}

if [[ ${1:-} == --wrong ]]; then
  check_wrong
  exit
fi
if [[ ${1:-} == --all ]]; then
  all_headers
  exit
fi

key=$(cat "${headers[@]}" "$templates" "$wrong" scripts/check_headers.sh <(echo "$nvcc") | sha256sum | cut -c1-32)
if [[ ! -e $passed/$key ]]; then
  # The longest first, so that no core waits for it at the end.
  {
    [[ -z $nvcc ]] || printf '%s\0' --all ""
    printf -- '--build\0%s\0' "${builds[@]}"
    printf '%s\0' --wrong ""
    printf -- '--one\0%s\0' "${headers[@]}"
  } | xargs -0 -n 2 -P "$jobs" "$0"
  find "$passed" -type f -mtime +30 -delete
  touch "$passed/$key"
fi
as_cu=" and as .cu"
[[ -n $nvcc ]] || as_cu=" (no nvcc: not as .cu)"
echo "${#headers[@]} public headers compile alone as .cc$as_cu, and their templates in ${#builds[@]} users' builds"
