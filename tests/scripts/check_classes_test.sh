#!/usr/bin/env bash
# Holds scripts/check_classes.py to its rules, on small trees.
#
#   check_classes_test.sh ROOT      ROOT: the project
set -euo pipefail

if ! command -v ctags >/dev/null; then
  echo "not tried: ctags is not installed"
  exit 0
fi
source "$1/tests/scripts/run_python.sh"
check() { run_python "$root/scripts/check_classes.py" "$@"; }
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$python_output"' EXIT
mkdir -p "$tree/src" "$tree/scripts"
failed=0

# Writes a class of so many methods, each overloaded once, and so many data members.
class() {
  {
    echo "class Large {"
    echo " public:"
    echo "  Large(); ~Large(); bool operator==(const Large&) const;"
    for ((i = 0; i < $1; ++i)); do echo "  absl::Status Do$i(int a) const; int Do$i(double b) { return 1; }"; done
    for ((i = 0; i < $2; ++i)); do echo "  std::vector<int> member$i ABSL_GUARDED_BY(mu_) = {};"; done
    echo "};"
  } >"$tree/src/large.h"
}
rows() {
  printf 'class\tmethods\tmembers\twhy it is one thing\n' >"$tree/scripts/large_classes.tsv"
  [[ $# -eq 0 ]] || printf '%s\n' "$@" >>"$tree/scripts/large_classes.tsv"
}
# expect pass|WORDS
expect() {
  local out code=0
  out=$(check "$tree" 2>&1) || code=$?
  if [[ $1 == pass ]]; then
    [[ $code -eq 0 ]] || { echo "it should have passed: $out"; failed=1; }
  elif [[ $code -eq 0 || $out != *"$1"* ]]; then
    echo "it should have said '$1': $out"
    failed=1
  fi
}

rows
class 40 20
expect pass
class 41 20
expect "Large has 41 methods and 20 data members"
class 3 21
expect "Large has 3 methods and 21 data members"
rows $'Large\t41\t21\tIt is the table of something.'
class 41 21
expect pass
class 42 21
expect "Large has grown to 42 methods"
class 41 22
expect "22 data members; its row"
class 40 20
expect "take out its row"
rows $'Large\t41\t21\tlarge'
class 41 21
expect "the reason is to be a sentence"
exit "$failed"
