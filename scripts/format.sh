#!/usr/bin/env bash
# Formats every C++, CUDA and JavaScript file of the project in place; with --check only says which are not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(find include graph src examples bench tests -type f \
                       \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.js' \) | sort)
if [[ ${1:-} != --check ]]; then
  clang-format-19 -i "${files[@]}"
  exit
fi
mapfile -t bad < <(printf '%s\0' "${files[@]}" | xargs -0 -n 100 -P "$(nproc)" clang-format-19 --dry-run 2>&1 |
                     sed -n 's/^\([^ :]*\):[0-9].*\[-Wclang-format-violations\]$/\1/p' | sort -u)
if [[ ${#bad[@]} -gt 0 ]]; then
  printf 'not formatted: %s\n' "${bad[@]}"
  echo "scripts/format.sh formats them."
  exit 1
fi
echo "${#files[@]} files are formatted"
