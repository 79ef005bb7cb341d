#!/usr/bin/env bash
# Holds scripts/check_snippets.py to its rules: a small tutorial and a program that it must pass, then changes to either
# that must be refused with the place and the words given.
#
#   check_snippets_test.sh ROOT      ROOT: the project
set -euo pipefail

source "$1/tests/scripts/run_python.sh"
check() { run_python "$root/scripts/check_snippets.py" "$@"; }
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$python_output"' EXIT
page=$tree/docs/tutorial/1-add.md
source=$tree/examples/tutorial/1_add.cc
program=$tree/program
failed=0

plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs/tutorial" "$tree/examples/tutorial"
  cat >"$source" <<'TEXT'
int Add() {
  int sum = 0;

  for (int i : {1, 2}) {
    sum += i;
  }
  return sum;
}
TEXT
  echo 'constexpr int kTwo = 2;' >"$tree/examples/tutorial/1_two.h"
  cat >"$page" <<'TEXT'
# Add
```cpp
int sum = 0;

for (int i : {1, 2}) {
  sum += i;
}
```
```cpp
constexpr int kTwo = 2;
```
```sh
nowhere --in the program
```
```text
the sum is 3
```
TEXT
  printf '#!/bin/sh\necho "the sum is 3"\n' >"$program"
  chmod +x "$program"
}

# refused WORDS COMMAND...: fails, and says WORDS.
refused() {
  local words=$1 output
  shift
  if output=$("$@"); then
    echo "not refused: $words"
    failed=1
  elif [[ $output != *"$words"* ]]; then
    echo "refused for another reason than '$words': $output"
    failed=1
  fi
}
passed() {
  local output
  output=$("$@") || { echo "refused, but right: $output"; failed=1; }
}

plant
passed check "$tree"
passed check --run "$page" "$program"

# The pages.
plant && sed -i 's/sum += i/sum -= i/' "$source"
refused "docs/tutorial/1-add.md:3: these lines are not in 1_add.cc or 1_two.h" check "$tree"
plant && sed -i 's/^  sum += i/    sum += i/' "$page"
refused "1-add.md:3: these lines are not in" check "$tree"
plant && sed -i '/^$/d' "$page"
refused "1-add.md:3: these lines are not in" check "$tree"
plant && sed -i 's/kTwo/kThree/' "$page"
refused "1-add.md:10: these lines are not in" check "$tree"
plant && mv "$page" "$tree/docs/tutorial/2-add.md"
refused "2-add.md:3: these lines are not in any program" check "$tree"
plant && sed -i 's/```cpp/```c++/' "$page"
refused "1-add.md:1: the page shows no code" check "$tree"

# A page of the cookbook shows the files that begin with its name; the first page of its folder shows no code.
move_to_cookbook() {
  plant
  mkdir -p "$tree/docs/howto/cookbook" "$tree/examples/cookbook"
  mv "$page" "$tree/docs/howto/cookbook/add.md"
  mv "$source" "$tree/examples/cookbook/add.cc"
  mv "$tree/examples/tutorial/1_two.h" "$tree/examples/cookbook/add_two.h"
  echo "# Cookbook" >"$tree/docs/howto/cookbook/README.md"
}
move_to_cookbook
passed check "$tree"
move_to_cookbook && sed -i 's/sum += i/sum -= i/' "$tree/examples/cookbook/add.cc"
refused "docs/howto/cookbook/add.md:3: these lines are not in add.cc or add_two.h" check "$tree"
move_to_cookbook && mv "$tree/docs/howto/cookbook/add.md" "$tree/docs/howto/cookbook/sum.md"
refused "docs/howto/cookbook/sum.md:3: these lines are not in any program" check "$tree"

# The page beside an example shows the sources beside it, or no code.
move_to_examples() {
  plant
  mkdir -p "$tree/examples/add"
  mv "$page" "$tree/examples/add/README.md"
  mv "$source" "$tree/examples/add/add.cc"
  mv "$tree/examples/tutorial/1_two.h" "$tree/examples/add/two.cc"
}
move_to_examples
passed check "$tree"
move_to_examples && sed -i 's/sum += i/sum -= i/' "$tree/examples/add/add.cc"
refused "examples/add/README.md:3: these lines are not in add.cc or two.cc" check "$tree"
move_to_examples && sed -i 's/```cpp/```/' "$tree/examples/add/README.md"
passed check "$tree"
# A page with another name shows the sources whose names begin with it.
move_to_examples && mv "$tree/examples/add/README.md" "$tree/examples/add/add.md"
refused "examples/add/add.md:10: these lines are not in add.cc" check "$tree"
mv "$tree/examples/add/two.cc" "$tree/examples/add/add_two.cc"
passed check "$tree"

# The output.
plant && sed -i 's/is 3/is 4/' "$program"
refused "1-add.md shows" check --run "$page" "$program"
plant && sed -i 's/is 3/is 4/' "$program" && sed -i 's/```text/```text numbers vary/' "$page"
passed check --run "$page" "$program"
plant && sed -i 's/is 3/is    4.25/' "$program" && sed -i 's/```text/```text numbers vary/' "$page"
passed check --run "$page" "$program"
plant && sed -i 's/the sum/the  sum/' "$program" && sed -i 's/```text/```text numbers vary/' "$page"
refused "1-add.md shows" check --run "$page" "$program"
plant && sed -i 's/the sum/a sum/' "$program" && sed -i 's/```text/```text numbers vary/' "$page"
refused "1-add.md shows" check --run "$page" "$program"
plant && echo 'exit 1' >>"$program"
refused "ended with 1" check --run "$page" "$program"
plant && sed -i 's/```text/```/' "$page"
refused "0 blocks of output" check --run "$page" "$program"
exit "$failed"
