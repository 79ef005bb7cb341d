#!/usr/bin/env bash
# Holds scripts/performance_page.py to its rules: the page that it writes passes its own check, and each row changes one
# file of the tree by a sed expression and must be refused with the words given.
#
#   performance_page_test.sh ROOT      ROOT: the project
set -euo pipefail

source "$1/tests/scripts/run_python.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$python_output"' EXIT
failed=0

plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/scripts" "$tree/bench"
  cp "$1"/scripts/{performance_page,plot,bench_results}.py "$tree/scripts"
  cp -r "$1/bench/results" "$tree/bench"
  run_python "$tree/scripts/performance_page.py" >/dev/null
}

plant "$1"
output=$(run_python "$tree/scripts/performance_page.py" --check) || { echo "refused, but right: $output"; failed=1; }

while IFS='%' read -r file change words; do
  [[ -n $file ]] || continue
  plant "$1"
  sed -i "$change" "$tree/$file"
  if output=$(run_python "$tree/scripts/performance_page.py" --check 2>&1); then
    echo "not refused: $file with '$change'"
    failed=1
  elif [[ $output != *"$words"* ]]; then
    echo "refused for another reason: $file with '$change': $output"
    failed=1
  fi
done <<'ROWS'
docs/performance.md%s/missed/met/%docs/performance.md is not what
docs/figures/measured/replay.svg%s/circle/ellipse/%docs/figures/measured/replay.svg is not what
bench/results/gpu/copies.csv%1s/way/means/%copies.csv:1: the columns must be
bench/results/gpu/copies.csv%2s/,GB\/s,[0-9.]*,/,GB\/s,many,/%copies.csv:2: value is no number: many
bench/results/gpu/copies.csv%2s/$/,more/%copies.csv:2: 17 cells instead of 16
bench/results/gpu/tests.csv%2d%docs/performance.md is not what
bench/results/targets.tsv%s/chain of 100,/chain of 99,/%no figures of Submit a replay
bench/results/targets.tsv%s/difference/sum/%unknown use or relation
bench/results/performance.md.in%s/Headlines/Summary/%docs/performance.md is not what
ROWS

plant "$1"
touch "$tree/docs/figures/measured/old.svg"
if output=$(run_python "$tree/scripts/performance_page.py" --check) || [[ $output != *"old.svg is no figure"* ]]; then
  echo "a figure too many is not refused: $output"
  failed=1
fi
exit "$failed"
