#!/usr/bin/env bash
# Holds scripts/gdb.py to what docs/howto/debugging.md says of it: gdb stops in a program and prints a value of each kind.
#
#   gdb_test.sh ROOT PROGRAM      ROOT: the project; PROGRAM: gdb_printed
#
# Without gdb, or where the system lets no process trace another, it says so and passes.
set -euo pipefail

command -v gdb >/dev/null || { echo "skipped: there is no gdb; the Debian package is gdb"; exit 0; }
output=$(gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set startup-with-shell off' -ex "source $1/scripts/gdb.py" \
  -ex 'break Stop' -ex run -ex up -ex 'print fine' -ex 'print bare' -ex 'print told' -ex 'print seven' \
  -ex 'print none' -ex 'print *slot' -ex 'print plan' "$2" 2>&1) || { echo "$output"; exit 1; }
if grep -qiE 'ptrace|operation not permitted|could not trace' <<<"$output"; then
  echo "skipped: gdb may trace no process here:"
  echo "$output"
  exit 0
fi

failed=0
while IFS= read -r words; do
  grep -qF -- "$words" <<<"$output" || { echo "gdb did not print: $words"; failed=1; }
done <<'ROWS'
$1 = OK
$2 = CANCELLED
$3 = INVALID_ARGUMENT: no such buffer
$4 = OK: 7
$5 = NOT_FOUND: no such device
$6 = slot 3 = {
serial = 12
$7 = plan "saxpy": 2 nodes, 2 lanes, 0 events
  0  "upload x"  kUpload  device 0 lane 1 segment 0
  1  "axpy"  kParallelFor  device 0 lane 0 segment 0
ROWS
[[ $failed -eq 0 ]] || echo "$output"
exit "$failed"
