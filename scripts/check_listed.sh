#!/usr/bin/env bash
# Checks that every source file is named in the CMakeLists.txt of its folder or of one above: a file that nobody
# compiles is neither tested nor checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Whether a CMakeLists.txt between `file` and the root names it, by its path from there.
named() {
  local folder
  folder=$(dirname "$1")
  while [[ $folder != . ]]; do
    if [[ -f $folder/CMakeLists.txt ]] &&
       # not -q: grep would leave early, and tr's broken pipe would count as a failure
       tr -s '() \t' '\n' <"$folder/CMakeLists.txt" | grep -xF -- "${1#"$folder"/}" >/dev/null; then
      return 0
    fi
    folder=$(dirname "$folder")
  done
  return 1
}

count=0 bad=()
while IFS= read -r file; do
  count=$((count + 1))
  named "$file" || bad+=("$file")
done < <(find graph src examples bench tests -type f \( -name '*.cc' -o -name '*.cu' \) ! -path 'tests/consumers/*' | sort)
if [[ ${#bad[@]} -gt 0 ]]; then
  printf 'not listed in any CMakeLists.txt: %s\n' "${bad[@]}"
  exit 1
fi
echo "$count source files are listed"
