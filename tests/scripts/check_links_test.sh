#!/usr/bin/env bash
# Holds scripts/check_links.py to its rules: a small tree and a small site that it must pass, then each row adds one
# line to a file and must be refused with the place and the words given.
#
#   check_links_test.sh ROOT      ROOT: the project
set -euo pipefail

source "$1/tests/scripts/run_python.sh"
check() { run_python "$root/scripts/check_links.py" "$@"; }
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$python_output"' EXIT
failed=0

plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs/howto" "$tree/src/memory"
  touch "$tree/src/memory/pool.h" "$tree/src/memory/pool.cc"
  cat >"$tree/README.md" <<'TEXT'
# Front `page`
[Bind](docs/howto/bind.md), [its part](docs/howto/bind.md#bind-memory-a-second-time), [here](#front-page),
[sources](src), [elsewhere](https://example.com/none), ![figure](docs/plan.svg), [by name][bind];
`src/memory/pool.{h,cc}`, `src/*/*.h`,
`src/memory/`, `src/memory/pool.cc:12`, `run/src/none`, `-Isrc/none`, `a[b](none)`, code over two lines: `a
b`, and `[c](none)`.

[bind]: docs/howto/bind.md#same-1
```cpp
[](none.md) `src/none.cc`
```
TEXT
  cat >"$tree/docs/howto/bind.md" <<'TEXT'
# Bind
## Bind *memory*, a second `time`
## Same
## Same
[up](../../README.md)
TEXT
  echo '<svg/>' >"$tree/docs/plan.svg"
  echo '<h1 id="top">Top</h1><a href="b.html#in">b</a><a href="#top">top</a><img src="p.svg">' >"$tree/docs/a.html"
  echo '<p id="in"><a href="a.html">a</a></p>' >"$tree/docs/b.html"
  cp "$tree/docs/plan.svg" "$tree/docs/p.svg"
}

# expect FILE LINE WORDS COMMAND...: FILE with one more LINE is refused with WORDS.
expect() {
  local file=$1 line=$2 words=$3 output
  shift 3
  plant
  echo "$line" >>"$tree/$file"
  if output=$("$@"); then
    echo "not refused: $file with '$line'"
    failed=1
  elif [[ $output != *"$(basename "$file"):$(wc -l <"$tree/$file"): "*"$words"* ]]; then
    echo "refused for another reason: $file with '$line': $output"
    failed=1
  fi
}

plant
output=$(check "$tree") || { echo "refused, but right: $output"; failed=1; }
output=$(check --site "$tree/docs") || { echo "refused, but right: $output"; failed=1; }

while IFS='|' read -r file line words; do
  [[ -z $file ]] || expect "$file" "$line" "$words" check "$tree"
done <<'ROWS'
README.md|[a](docs/none.md)|there is no such file
README.md|[a](docs/howto/bind.md#none)|no such heading
README.md|[a](#none)|no such heading
README.md|![a](docs/none.svg)|there is no such file
README.md|[none]: none.md|there is no such file
README.md|<img src="none.png">|there is no such file
README.md|[a](/docs/howto/bind.md)|make it relative
README.md|[a](../outside.md)|leaves the tree
README.md|see `src/memory/pool.cpp`|there is no such path
README.md|see `src/memory/pool.{h,cu}`|there is no such path
README.md|see `src/*/*.cu`|there is no such path
README.md|see `src/memory/pool.h/`|there is no such path
README.md|see `scripts/check_none`|there is no such path
docs/howto/bind.md|[a](../none.md)|there is no such file
docs/howto/bind.md|`docs/howto/none.md`|there is no such path
ROWS

while IFS='|' read -r file line words; do
  [[ -z $file ]] || expect "$file" "$line" "$words" check --site "$tree/docs"
done <<'ROWS'
docs/a.html|<a href="none.html">|there is no such file
docs/a.html|<a href="b.html#none">|no such heading or anchor
docs/b.html|<img src="none.png">|there is no such file
ROWS
exit "$failed"
