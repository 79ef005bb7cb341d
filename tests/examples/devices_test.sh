#!/usr/bin/env bash
# That cholesky and mlp are right on one host device and on several, and refuse what they cannot do.
#
#   devices_test.sh cholesky|mlp COMMAND...      COMMAND: the program
set -euo pipefail

example=$1
shift
program=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# prints TEXT OPTION...: ends with 0, and the last line it prints begins so.
prints() {
  local code=0
  "${program[@]}" "${@:2}" >"$folder/out" 2>"$folder/err" || code=$?
  [[ $code -eq 0 && $(tail -n 1 "$folder/out") == "$1"* ]] || report "prints: $1" "$code" "${@:2}"
}
# refuses TEXT OPTION...: ends with 1 and says so on stderr.
refuses() {
  local code=0
  "${program[@]}" "${@:2}" >"$folder/out" 2>"$folder/err" || code=$?
  [[ $code -eq 1 && $(cat "$folder/err") == *"$1"* ]] || report "refuses: $1" "$code" "${@:2}"
}
report() {
  echo "not so: $1, with ${*:3}; it ended with $2:"
  cat "$folder/out" "$folder/err"
  failed=1
}

case $example in
  cholesky)
    for devices in 1 2 3; do
      prints "6 x 6 tiles of 16 x 16 on $devices devices" --devices "host:$devices" --tiles 6 --size 16
    done
    prints "1 x 1 tiles of 5 x 5 on 1 devices" --devices host:2 --tiles 1 --size 5
    prints "8 x 8 tiles of 64 x 64 on 2 devices" --devices host:2
    refuses "leading minor of order 42 is not positive" --devices host:2 --tiles 6 --size 16 --diagonal 7
    refuses "leading minor of order 1 is not positive" --devices host --tiles 2 --size 8 --diagonal -5
    refuses "1 to 64 tiles" --tiles 0
    refuses "1 to 4096 rows" --size x
    ;;
  mlp)
    for devices in 1 2 3; do
      used=$((devices > 1 ? 2 : 1))
      prints "16 steps of 4 micro-batches on $used devices: the loss fell from 102.91 to 46.43" \
        --devices "host:$devices" --steps 16
    done
    for micro_batches in 1 16; do
      prints "16 steps of $micro_batches micro-batches on 2 devices: the loss fell from 102.91 to 46.43" \
        --devices host:2 --steps 16 --micro-batches "$micro_batches"
    done
    refuses "10 steps or more" --steps 9
    refuses "divides 64" --micro-batches 3
    refuses "divides 64" --micro-batches 0
    ;;
  *) echo "there is no example $example"; failed=1 ;;
esac
refuses "there is no --device" --device host
refuses "--devices lacks a value" --devices
exit "$failed"
