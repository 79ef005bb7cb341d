#!/usr/bin/env bash
# Formats every C++ and CUDA file of the project in place; with --check only says which are not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(find include graph src examples bench tests -type f \
                       \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) | sort)
if [[ ${1:-} != --check ]]; then
  clang-format-19 -i "${files[@]}"
  exit
fi
bad=()
for file in "${files[@]}"; do
  clang-format-19 --dry-run -Werror "$file" >/dev/null 2>&1 || bad+=("$file")
done
if [[ ${#bad[@]} -gt 0 ]]; then
  printf 'not formatted: %s\n' "${bad[@]}"
  echo "scripts/format.sh formats them."
  exit 1
fi
echo "${#files[@]} files are formatted"
