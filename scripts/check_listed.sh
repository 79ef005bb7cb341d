#!/usr/bin/env bash
# Checks that every source file is named in the CMakeLists.txt of its folder or of one above: a file that nobody
# compiles is neither tested nor checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Every word of a CMakeLists.txt, as a path from the root.
declare -A named=()
while IFS= read -r list; do
  folder=$(dirname "$list")
  while IFS= read -r word; do [[ -z $word ]] || named[$folder/$word]=1; done < <(tr -s '() \t' '\n' <"$list")
done < <(find graph src examples bench tests -name CMakeLists.txt)

count=0 bad=()
while IFS= read -r file; do
  count=$((count + 1))
  [[ -v named[$file] ]] || bad+=("$file")
done < <(find graph src examples bench tests -type f \( -name '*.cc' -o -name '*.cu' \) ! -path 'tests/consumers/*' | sort)
if [[ ${#bad[@]} -gt 0 ]]; then
  printf 'not listed in any CMakeLists.txt: %s\n' "${bad[@]}"
  exit 1
fi
echo "$count source files are listed"
