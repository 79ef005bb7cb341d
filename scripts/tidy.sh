#!/usr/bin/env bash
# Runs clang-tidy-19 with .clang-tidy on what the library compiles, in parallel: many of its sources at a time, as the
# build does, which takes a fraction of the time. A batch that passed is skipped until its preprocessed text or .clang-tidy
# changes; what passed is remembered in the user's cache, for all checkouts.
#
#   scripts/tidy.sh BUILD      BUILD: a folder with compile_commands.json made by clang-19 (preset tidy)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

passed=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/penstock-tidy

# The command line of FILE in BUILD's compile_commands.json, as preprocessor with comments kept (NOLINT is one).
preprocess() {
  local command
  command=$(awk -v file="$PWD/$2" '
    /"command":/ { command = $0 }
    /"file":/ { if (index($0, "\"" file "\"")) { sub(/^[^:]*: "/, "", command); sub(/",?$/, "", command); print command; exit } }
  ' "$1/compile_commands.json")
  command=${command#*ccache }
  command=${command%% -o *}
  (cd "$1" && eval "${command//\\\"/\"} -E -C -w \"$OLDPWD/$2\"") | sed "s|$PWD/||g"
}

if [[ ${1:-} == --one ]]; then
  build=$2 file=$3
  key=$(cat .clang-tidy <(preprocess "$build" "$file") | sha256sum | cut -c1-32)
  if [[ -e $passed/$key ]]; then
    touch "$passed/$key"
    exit
  fi
  if ! output=$(clang-tidy-19 -p "$build" --quiet --checks=-bugprone-suspicious-include "$file" 2>&1); then
    grep -v 'warnings generated\.$' <<<"$output"
    exit 1
  fi
  touch "$passed/$key"
  echo >>"$build/looked-at"
  exit
fi

build=$1
mkdir -p "$passed"
find "$passed" -type f -mtime +30 -delete
: >"$build/looked-at"
mapfile -t files < <(awk -v root="$PWD/" -F'"' '/"file":/ { sub(root, "", $4); print $4 }' "$build/compile_commands.json" |
                     grep -vE '/(penstock_kernels|report_pieces).cc$' | sort -u)  # which are generated
[[ ${#files[@]} -gt 0 ]] || { echo "no library files in $build/compile_commands.json"; exit 1; }
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" "$0" --one "$build"
echo "${#files[@]} batches of library files pass clang-tidy ($(wc -l <"$build/looked-at") of them were looked at now)"
