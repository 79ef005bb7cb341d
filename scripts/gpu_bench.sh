#!/usr/bin/env bash
# Runs the bundle's benchmarks on this machine's GPUs, shows the tables that they print, and appends their figures to
# the CSV files of bench/results. The tests of the bundle run first, unless they have passed here already.
#
#   scripts/gpu_bench.sh [--out FOLDER]     FOLDER: bench/results by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/gpu_common.sh
source scripts/bench_common.sh

out=bench/results
while [[ $# -gt 0 ]]; do
  case $1 in
    --out) [[ $# -ge 2 ]] || cannot "gpu-bench: --out needs a folder"; out=$2; shift 2 ;;
    --out=*) out=${1#--out=}; shift ;;
    *) cannot "gpu-bench: unknown option '$1'; ./run --help lists what there is" ;;
  esac
done
need_bundle_and_gpu gpu-bench
mkdir -p "$out/gpu" "$out/host" 2>/dev/null || cannot "gpu-bench: cannot write $out"

failed=
if [[ -f $results/id && $(cat "$results/id") == "$(results_id)" ]]; then
  say "the tests of this bundle have passed here already"
else
  scripts/gpu_test.sh || failed=1
fi
ran=$(cat "$results/cuda-passed" "$results/cuda-failed" | wc -l)
[[ $ran -gt 0 ]] || cannot "gpu-bench: not one CUDA test ran; no figures without"

smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null; }
gpus() { smi name | sort | uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); printf "%s%d x %s", sep, n, $0; sep = ", " }'; }
cpu() { awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo; }
memory() { awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo; }
cuda_version() { nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1; }

processor="$(cpu), $(nproc) cores, $(memory)"
gpu_machine="$(gpus); $processor; driver $(smi driver_version | head -n 1), CUDA $(cuda_version)"
host_machine="$processor; host of $(gpus)"
commit=$(cat "$bundle/COMMIT")
say "machine: $gpu_machine"
say "commit: $commit"

# How many CUDA tests stand behind the figures, and which did not run or failed.
tests=$results/tests.csv
test_row() {
  printf 'tests,CUDA tests,%s,Penstock,%s,tests,%s,,,,,,%s,%s,gpu-test,%s\n' "$(csv_cell "$1")" "$2" "$3" \
    "$(csv_cell "$gpu_machine")" "$(date -u +%F)" "$commit"
}
{
  echo "$csv_columns"
  test_row "CUDA tests" ran "$ran"
  for outcome in failed skipped; do
    test_row "CUDA tests" "$outcome" "$(wc -l <"$results/cuda-$outcome")"
    while IFS= read -r name; do test_row "$name" "$outcome" 1; done <"$results/cuda-$outcome"
  done
} >"$tests"
append_figures "$tests" "$out/gpu/tests.csv"

count=0
for path in "$bundle"/bench/*; do
  [[ -x $path ]] || continue
  program=$(basename "$path")
  benchmark=${program%.sh}
  if missing=$(ldd "$path" 2>/dev/null | grep 'not found'); then  # cuBLAS, which the bundle does not carry
    say "$program: left out, for want of" $missing
    continue
  fi
  say "$program"
  count=$((count + 1))
  code=0 kind=$(kind_of "$benchmark")
  machine=$gpu_machine
  [[ $kind == gpu ]] || machine=$host_machine
  rm -f "$results/$benchmark.csv"
  timeout 400 "$path" --csv "$results/$benchmark.csv" --machine "$machine" --commit "$commit" \
    2>"$results/$program.err" | tee "$results/$benchmark.md" || code=$?
  if [[ $code -ne 0 ]]; then
    tail -n 20 "$results/$program.err" >&2
    say "$program ended with exit code $code; its figures are left in $results/$benchmark.csv"
    failed=1
    continue
  fi
  if [[ -s $results/$benchmark.csv ]]; then append_figures "$results/$benchmark.csv" "$out/$kind/$benchmark.csv"; fi
done
[[ $count -gt 0 ]] || cannot "gpu-bench: no benchmarks in $bundle/bench"

say "gpu-bench: appended to $out"
if [[ $out == bench/results && -f $out/performance.md.in ]] && command -v python3 >/dev/null; then
  scripts/performance_page.py
else
  say "scripts/performance_page.py writes docs/performance.md once the files of $out are in bench/results of a checkout"
fi
[[ -z $failed ]] || { say "gpu-bench: FAILED: see above"; exit 1; }
