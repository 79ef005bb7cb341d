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
  mkdir -p "$tree/graph" "$tree/src/runtime" "$tree/docs/explanation"
  cat >"$tree/src/runtime/a.h" <<'TEXT'
struct Plain {
  std::atomic<int> count{0}, other{0};  // calls, and those that failed
};
class ABSL_LOCKABLE Core : public std::enable_shared_from_this<Core> {
  struct Inner {
    // A state for each step.
    std::vector<std::atomic<State>> states;
  };
  mutable base::Mutex mu_ ABSL_ACQUIRED_BEFORE(other_);
  int guarded_ ABSL_GUARDED_BY(mu_) = 0;
  Atomic<bool> closed_{false};  // nothing comes in
};
TEXT
  cat >"$tree/src/runtime/b.cc" <<'TEXT'
void F(base::Mutex& mu) {
  static base::Mutex kept;  // guards what is kept
}
// Set once.
std::atomic<bool> lost{false};
TEXT
  cat >"$tree/docs/explanation/threads.md" <<'TEXT'
`Not::this_one`
## Lock order
- `Core::mu_`, then
- `b.cc: kept`; no lock is `a thing`.
## Else
`Not::that_one`
TEXT
}

plant
output=$("$check" "$tree") || { echo "refused, but right: $output"; failed=1; }

# file|change|words. A change is a line to add; after "-" words whose lines go; after "-=" words that go.
while IFS='|' read -r file change words; do
  [[ -n $file ]] || continue
  plant
  case $change in
    -=*) awk -v gone="${change#-=}" '{ at = index($0, gone); print at ? substr($0, 1, at - 1) substr($0, at + length(gone)) : $0 }' \
           "$tree/$file" >"$tree/kept" && mv "$tree/kept" "$tree/$file" ;;
    -*) grep -vF -- "${change#-}" "$tree/$file" >"$tree/kept" || true
        mv "$tree/kept" "$tree/$file" ;;
    *) echo "$change" >>"$tree/$file" ;;
  esac
  if output=$("$check" "$tree"); then
    echo "not refused: $file with '$change'"
    failed=1
  elif [[ $output != *"$words"* ]]; then
    echo "refused for another reason: $file with '$change': $output"
    failed=1
  fi
done <<'ROWS'
docs/explanation/threads.md|-Core::mu_|not in docs/explanation/threads.md, 'Lock order':
docs/explanation/threads.md|-b.cc: kept|b.cc: kept
docs/explanation/threads.md|-## Else|but not in the sources:
src/runtime/a.h|-base::Mutex mu_|but not in the sources:
src/runtime/a.h|-=  // calls, and those that failed|src/runtime/a.h:2: Plain::other
src/runtime/a.h|-// A state for each step.|Inner::states
src/runtime/a.h|-=  // nothing comes in|atomics without a comment
src/runtime/a.h|-guarded_|locks without a comment
src/runtime/b.cc|-=  // guards what is kept|src/runtime/b.cc:2: b.cc: kept
src/runtime/b.cc|-// Set once.|b.cc: lost
src/runtime/b.cc|base::Mutex more;  // for more|b.cc: more
src/runtime/b.cc|std::mutex mu;|only src/base/mutex.h
src/runtime/b.cc|std::unique_ptr<std::atomic<int>> far;|cannot be read
ROWS
exit "$failed"
