#!/usr/bin/env bash
# Runs the bundle's benchmarks on this machine's GPUs and writes the report: what was run, where, and the tables the
# programs print. The tests of the bundle run first, unless they have passed here already.
#
#   scripts/gpu_bench.sh [--out FILE]     FILE: docs/performance.md by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/gpu_common.sh

out=docs/performance.md
while [[ $# -gt 0 ]]; do
  case $1 in
    --out) [[ $# -ge 2 ]] || cannot "gpu-bench: --out needs a file"; out=$2; shift 2 ;;
    --out=*) out=${1#--out=}; shift ;;
    *) cannot "gpu-bench: unknown option '$1'; ./run --help lists what there is" ;;
  esac
done
need_bundle_and_gpu gpu-bench
mkdir -p "$(dirname "$out")" 2>/dev/null && touch "$out.part" 2>/dev/null || cannot "gpu-bench: cannot write $out"
trap 'rm -f "$out.part"' EXIT

failed=
if [[ -f $results/id && $(cat "$results/id") == "$(results_id)" ]]; then
  say "the tests of this bundle have passed here already"
else
  scripts/gpu_test.sh || failed=1
fi
ran=$(cat "$results/cuda-passed" "$results/cuda-failed" | wc -l)
[[ $ran -gt 0 ]] || cannot "gpu-bench: not one CUDA test ran; no report without"

smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null; }
gpus() { smi name | sort | uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); printf "%s%d x %s", sep, n, $0; sep = ", " }'; }
cpu() {
  awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo
}
memory() { awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo; }
cuda_version() { nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1; }

{
  cat <<TEXT
# Performance

Written by \`./run gpu-bench\`; figures of one run on one machine. Compare the ratios, which come from one program and
one run, rather than absolute times.

| | |
|---|---|
| commit | $(cat "$bundle/COMMIT") |
| machine | $(gpus); $(cpu), $(nproc) cores, $(memory) |
| driver | $(smi driver_version | head -n 1), CUDA $(cuda_version) |
| date | $(date -u '+%Y-%m-%d %H:%M UTC') |
| CUDA tests | $ran ran, $(wc -l <"$results/cuda-failed") failed, $(wc -l <"$results/cuda-skipped") skipped |
TEXT
  if [[ -s $results/cuda-failed ]]; then printf '\nFailed:\n\n'; sed 's/^/- /' "$results/cuda-failed"; fi
  if [[ -s $results/cuda-skipped ]]; then printf '\nSkipped:\n\n'; sed 's/^/- /' "$results/cuda-skipped"; fi
} >"$out.part"

count=0
for path in "$bundle"/bench/*; do
  [[ -x $path ]] || continue
  program=$(basename "$path")
  if missing=$(ldd "$path" 2>/dev/null | grep 'not found'); then  # cuBLAS, which the bundle does not carry
    say "$program: left out, for want of" $missing
    continue
  fi
  say "$program"
  count=$((count + 1))
  code=0
  printf '\n' >>"$out.part"
  timeout 400 "$path" 2>"$results/$program.err" | tee -a "$out.part" || code=$?
  if [[ $code -ne 0 ]]; then
    tail -n 20 "$results/$program.err" >&2
    printf '\n%s ended with exit code %d.\n' "$program" "$code" >>"$out.part"
    failed=1
  fi
done
[[ $count -gt 0 ]] || cannot "gpu-bench: no benchmarks in $bundle/bench"

# What was measured on other machines stands behind a mark and stays.
if [[ -f $out ]] && grep -q '^<!-- Kept by gpu-bench' "$out"; then
  { echo; sed -n '/^<!-- Kept by gpu-bench/,$p' "$out"; } >>"$out.part"
fi

mv "$out.part" "$out"
say "gpu-bench: wrote $out"
[[ -z $failed ]] || { say "gpu-bench: FAILED: see above"; exit 1; }
