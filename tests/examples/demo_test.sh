#!/usr/bin/env bash
# What the demo's user sees, with small frames on a host device: exit codes, both timelines and the picture.
#
#   demo_test.sh DEMO      DEMO: the program
set -euo pipefail

demo=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect WHAT COMMAND...
expect() {
  local what=$1
  shift
  "$@" || { echo "not so: $what"; failed=1; }
}
fails_with() {
  local code=0
  "${@:2}" >/dev/null 2>"$folder/err" || code=$?
  [[ $code -eq $1 && -s $folder/err ]]
}
row_of_both() { [[ $(grep -Ec "^  $1 +[.0-9]{72} +[0-9]+ %$" "$folder/out") -eq 2 ]]; }

small=(--devices host --height 90 --seconds 0.02)
expect "exits with 0" "$demo" "${small[@]}" --svg "$folder/timeline.svg" >"$folder/out"
expect "says that results agree" grep -q 'All results are the same, and a plain loop agrees' "$folder/out"
for title in 'One frame after the other' Pipelined; do
  expect "has a rate: $title" grep -Eq "^$title: [0-9.]+ frames a second$" "$folder/out"
done
for row in decode 'copy in' denoise 'copy out' encode; do
  expect "has the row $row twice" row_of_both "$row"
  expect "the picture names $row twice" test "$(grep -c ">$row<" "$folder/timeline.svg")" -eq 2
done
expect "the picture is XML with a bar for more than ten works" python3 - "$folder/timeline.svg" <<'PYTHON'
import sys
from xml.etree import ElementTree
bars = [e for e in ElementTree.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}rect") if e.get("x")]
sys.exit(len(bars) <= 10)
PYTHON
expect "an option it does not know is refused" fails_with 2 "$demo" --second 1
expect "a height that is no frame's is refused" fails_with 2 "$demo" "${small[@]}" --height 0
expect "a picture that cannot be written is an error" fails_with 1 "$demo" "${small[@]}" --svg "$folder/none/timeline.svg"
[[ $failed -eq 0 ]] || cat "$folder/out"
exit "$failed"
