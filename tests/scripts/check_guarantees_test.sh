#!/usr/bin/env bash
# Holds scripts/check_guarantees.py to its rules: a small tree that it must pass, then each row appends a line to a file
# of the tree, or removes those that contain the text after a minus, and must be refused with the words given.
#
#   check_guarantees_test.sh ROOT      ROOT: the project
set -euo pipefail

source "$1/tests/scripts/run_python.sh"
check() { run_python "$root/scripts/check_guarantees.py" "$@"; }
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$python_output"' EXIT
failed=0

plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs/guarantees" "$tree/tests"
  printf '| [Runs](guarantees/runs.md) | all | 2 |\n' >"$tree/docs/guarantees.md"
  cat >"$tree/docs/guarantees/runs.md" <<'TEXT'
# Runs
| id | guarantee |
|---|---|
| run-ends | A run ends. |
| run-begins | A run begins. |
TEXT
  printf '# A comment.\nid\ttests\tbreaks\n' >"$tree/tests/guarantees.tsv"
  printf 'run-ends\tRun.Ends Run.Stops\tit does not (`Run.Ends`)\nrun-begins\tRun.Begins\tit does not\n' >>"$tree/tests/guarantees.tsv"
  printf 'run-begins\tSteps.AreAsListed/First\tit does not\n' >>"$tree/tests/guarantees.tsv"
  printf 'TEST(Run, Ends) {}\nTEST_F(Run, Stops) {}\nTEST_P(Run, Begins) {}\n' >"$tree/tests/run_test.cc"
  printf '    {"First", 1},\nTEST_P(Steps, AreAsListed) {}\n' >"$tree/tests/steps_test.cc"
}

plant
output=$(check "$tree") || { echo "refused, but right: $output"; failed=1; }

long=$(printf 'x%.0s' {1..201})
while IFS='%' read -r file line words; do
  [[ -n $file ]] || continue
  plant
  if [[ $line == -* ]]; then
    grep -vF -- "${line#-}" "$tree/$file" >"$tree/kept" || true
    mv "$tree/kept" "$tree/$file"
  else
    printf "${line//LONG/$long}\n" >>"$tree/$file"
  fi
  if output=$(check "$tree"); then
    echo "not refused: $file with '$line'"
    failed=1
  elif [[ $output != *"$words"* ]]; then
    echo "refused for another reason: $file with '$line': $output"
    failed=1
  fi
done <<'ROWS'
docs/guarantees/runs.md%| run-waits | A run waits. |%names a test for run-waits
docs/guarantees/runs.md%| run-ends | LONG |%run-ends has 201 characters
docs/guarantees/runs.md%| run-ends | A run ends. |%run-ends also stands at
docs/guarantees/runs.md%| A run has no id. |%no row of an id and a guarantee
docs/guarantees/runs.md%-run-begins%no guarantee has the id run-begins
docs/guarantees/runs.md%-run-begins%has 1 guarantees, not 2
docs/guarantees.md%-runs.md%no row for docs/guarantees/runs.md
tests/guarantees.tsv%-run-begins%names a test for run-begins
tests/guarantees.tsv%run-ends\tSteps.AreAsListed/Second\tit does not%there is no test Steps.AreAsListed/Second
tests/guarantees.tsv%run-ends\tRun.Begins/First\tit does not%there is no test Run.Begins/First
tests/guarantees.tsv%run-ends\tRun.Waits\tit does not%there is no test Run.Waits
tests/guarantees.tsv%run-ends\tRun.Ends\tit does not (`Run.Waits`)%there is no test Run.Waits
tests/guarantees.tsv%run-ends\tscripts/gone.sh\tit does not%there is no script scripts/gone.sh
tests/guarantees.tsv%run-ends\t\tit does not%three cells
tests/guarantees.tsv%-breaks%the columns must be
tests/run_test.cc%-Stops%there is no test Run.Stops
tests/steps_test.cc%-First%there is no test Steps.AreAsListed/First
ROWS
exit "$failed"
