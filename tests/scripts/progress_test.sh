#!/usr/bin/env bash
# What a step of scripts/common.sh shows: a line that moves on a terminal, a line a step elsewhere, and the end of the log
# if it fails.
#
#   progress_test.sh ROOT      ROOT: the project
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

cat >"$folder/steps.sh" <<STEPS
set -euo pipefail
cd "$folder"
source "$1/scripts/common.sh"
good() { echo 'first of two'; echo 'second of two'; [[ ! -t 1 ]]; }
slow() { echo '[1/2] a.cc'; until [[ -e shown ]]; do sleep 0.05; done; }
bad() { echo 'it broke'; return 3; }
case \$1 in
  good) step 'a good step' good.log good ;;
  slow) step 'a slow step' slow.log slow ;;
  bad) step 'a bad step' bad.log bad ;;
esac
STEPS

# expect WHAT TEXT PATTERN
expect() {
  [[ $2 == $3 ]] || { printf 'not so: %s. It is:\n%s\n' "$1" "$2"; failed=1; }
}

expect "a line a step where there is no terminal" "$(bash "$folder/steps.sh" good)" '== a good step'
expect "the log has all of it" "$(cat "$folder/good.log")" $'first of two\nsecond of two'

code=0
output=$(bash "$folder/steps.sh" bad 2>&1) || code=$?
expect "a failed step shows its log and where it is" "$output" $'== a bad step\nit broke\n./run: failed: bad; *in bad.log'
expect "a failed step fails the script" "$code" 1

# A terminal: what moves is seen before the step may end.
(TERM=xterm script -qefc "bash '$folder/steps.sh' slow" "$folder/typescript" >/dev/null 2>&1 || touch "$folder/slow-failed") &
for ((i = 0; i < 600; ++i)); do
  ! grep -qF '[1/2] a.cc' "$folder/typescript" 2>/dev/null || break
  sleep 0.1
done
touch "$folder/shown"
wait
output=$(cat "$folder/typescript")
expect "a line moves on a terminal" "$output" $'*\r*== a slow step, * s  \[1/2\] a.cc*'
expect "the line gives way to how long it took" "$output" $'*\r*== a slow step: * s*'
[[ ! -e $folder/slow-failed ]] || { echo "the slow step failed"; failed=1; }

code=0
TERM=xterm script -qefc "bash '$folder/steps.sh' bad" "$folder/typescript" >/dev/null 2>&1 || code=$?
expect "a failed step on a terminal shows its log" "$(cat "$folder/typescript")" $'*it broke*failed: bad*'
expect "a failed step on a terminal fails the script" "$code" 1
exit "$failed"
