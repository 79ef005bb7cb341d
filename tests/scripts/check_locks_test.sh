#!/usr/bin/env bash
# Holds scripts/check_locks.sh to its rules: a small tree that it must pass, then each row changes the tree by one line
# and must be refused with the words given.
#
#   check_locks_test.sh ROOT      ROOT: the project
set -euo pipefail

check=$1/scripts/check_locks.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/graph" "$tree/src/runtime" "$tree/docs"
  cat >"$tree/src/runtime/a.h" <<'TEXT'
struct Plain {
  std::atomic<int> count{0}, other{0};
};
class ABSL_LOCKABLE Core : public std::enable_shared_from_this<Core> {
  struct Inner {
    std::vector<std::atomic<State>> states;  // std::atomic<int> none;
  };
  mutable base::Mutex mu_ ABSL_ACQUIRED_BEFORE(other_);
  Atomic<bool> closed_{false};
};
TEXT
  printf 'void F(base::Mutex& mu) {\n  static base::Mutex kept;\n}\nstd::atomic<bool> lost{false};\n' >"$tree/src/runtime/b.cc"
  cat >"$tree/docs/threading.md" <<'TEXT'
## Locks
| lock | guards |
|---|---|
| `Core::mu_` | `Core::closed_` |
| `b.cc: kept` | |
## Atomics
| `Plain::count`, `Plain::other` | |
| `Inner::states` | |
| `Core::closed_` | |
| `b.cc: lost` | |
## Else
| `Not::this` | |
TEXT
}

plant
output=$("$check" "$tree") || { echo "refused, but right: $output"; failed=1; }

while IFS='|' read -r file line words; do
  [[ -n $file ]] || continue
  plant
  if [[ $line == -* ]]; then
    grep -vF -- "${line#-}" "$tree/$file" >"$tree/kept" || true
    mv "$tree/kept" "$tree/$file"
  else
    echo "$line" >>"$tree/$file"
  fi
  if output=$("$check" "$tree"); then
    echo "not refused: $file with '$line'"
    failed=1
  elif [[ $output != *"$words"* ]]; then
    echo "refused for another reason: $file with '$line': $output"
    failed=1
  fi
done <<'ROWS'
docs/threading.md|-Core::mu_|not in docs/threading.md, table 'Locks':
docs/threading.md|-b.cc: kept|b.cc: kept
docs/threading.md|-Plain::count|Plain::other
docs/threading.md|-Inner::states|not in docs/threading.md, table 'Atomics':
src/runtime/a.h|-closed_|but not in the sources:
src/runtime/b.cc|-lost|b.cc: lost
src/runtime/b.cc|base::Mutex more;|b.cc: more
src/runtime/b.cc|std::mutex mu;|only src/base/mutex.h
src/runtime/b.cc|std::unique_ptr<std::atomic<int>> far;|cannot be read
ROWS
exit "$failed"
