#!/usr/bin/env bash
# Runs the bundle's tests on this machine's GPUs; a test that finds no device fails instead of skipping.
#
#   scripts/gpu_test.sh              every test program, the photo job against its reference, the demo, gemv_step,
#                                    cholesky, the tutorial, the primer, mlp, log_analytics and k_means
#   scripts/gpu_test.sh --sanitize   conformance_tests and gpu_tests under compute-sanitizer: memory errors and races in
#                                    stream-ordered memory, then races inside kernels. Tests named *Fault* break the
#                                    device on purpose and stay out; so does the one that destroys a stream with work
#                                    queued, since under the tool cudaStreamDestroy waits for work that the test lets
#                                    go only afterwards, and those of 2^32 elements, which would take hours.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/gpu_common.sh

sanitize=
case ${1:-} in
  '') ;;
  --sanitize) sanitize=1 ;;
  *) cannot "gpu-test: unknown option '$1'; ./run --help lists what there is" ;;
esac
need_bundle_and_gpu gpu-test
export PENSTOCK_REQUIRE_GPU=1

find_sanitizer() {
  local candidate
  for candidate in "$(command -v compute-sanitizer || true)" /usr/local/cuda/bin/compute-sanitizer \
                   /usr/local/cuda/compute-sanitizer/compute-sanitizer /opt/nvidia/*/compute-sanitizer; do
    if [[ -n $candidate && -x $candidate ]]; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# run_one PROGRAM LOG COMMAND...: one line of result, and the failures themselves. A program that hangs is ended.
run_one() {
  local program=$1 log=$2 code=0
  shift 2
  timeout -k 10 400 "$@" >"$log" 2>&1 || code=$?
  printf '   %-20s %4d passed, %d failed, %d skipped\n' "$program" "$(outcomes OK "$log" | wc -l)" \
    "$(outcomes FAILED "$log" | wc -l)" "$(outcomes SKIPPED "$log" | wc -l)"
  if [[ $code -ne 0 ]]; then
    printf '   %s ended with %d:\n' "$program" "$code"
    grep -vE '^\[ +(OK|RUN|-+) +\]|^\[-+\]' "$log" | tail -n 60
    failed=1
  fi
}

failed=
if [[ -n $sanitize ]]; then
  sanitizer=$(find_sanitizer) || cannot "gpu-test: no compute-sanitizer in PATH or /usr/local/cuda"
  mkdir -p "$bundle/sanitizer"
  # sanitize TOOL PROGRAM OPTION...
  sanitize() {
    local tool=$1 program=$2
    local log=$bundle/sanitizer/$program.$tool.log
    shift 2
    [[ -x $bundle/tests/$program ]] || return 0
    say "compute-sanitizer: $tool, $program"
    run_one "$program" "$log" "$sanitizer" --tool "$tool" "$@" --error-exitcode 99 "$bundle/tests/$program" \
      --gtest_filter='-*Fault*:*StreamsAndEventsMayGoWhileTheirWorkIsQueued*:LargeAlgorithms.*'
    grep -h ' SUMMARY' "$log" || { echo "   no summary from compute-sanitizer"; failed=1; }
  }
  for program in conformance_tests gpu_tests; do
    sanitize memcheck "$program" --track-stream-ordered-races all --report-api-errors no
    sanitize racecheck "$program"
  done
  [[ -z $failed ]] || { say "gpu-test --sanitize: FAILED"; exit 1; }
  say "gpu-test --sanitize: passed"
  exit
fi

rm -rf "$results"
mkdir -p "$results"
say "tests of $(cat "$bundle/COMMIT")"
for path in "$bundle"/tests/*; do
  program=$(basename "$path")
  # CUDA's libraries, which the bundle does not carry.
  if missing=$(ldd "$path" | grep -oE 'libcu\S+ => not found'); then
    printf '   %-20s left out: %s\n' "$program" "${missing//$'\n'/, }"
    continue
  fi
  run_one "$program" "$results/$program.log" "$path"
done
say "photos --verify: the photo job against its single-threaded reference"
pictures=$(mktemp -d)
trap 'rm -rf "$pictures"' EXIT
if timeout -k 10 400 "$bundle/examples/photos" "$bundle/photos" "$pictures" --devices cuda --verify --compare 0 \
     >"$results/photos.out" 2>&1; then
  echo "   same bit for bit"
else
  tail -n 30 "$results/photos.out"
  failed=1
fi
say "demo: both its jobs on a GPU, against each other and a plain loop"
if ! timeout -k 10 400 "$bundle/examples/demo" --devices cuda:0 >"$results/demo.out" 2>&1; then failed=1; fi
sed 's/^/   /' "$results/demo.out"
# with_libraries PROGRAM WHAT OPTION...: one that needs CUDA's libraries, which the bundle does not carry.
with_libraries() {
  local program=$1 libraries
  if libraries=$(ldd "$bundle/examples/$program" | grep -E 'libcu(blas|solver)') && [[ $libraries != *'not found'* ]]; then
    say "$program: $2"
    if ! timeout -k 10 400 "$bundle/examples/$program" "${@:3}" >"$results/$program.out" 2>&1; then failed=1; fi
    sed 's/^/   /' "$results/$program.out"
  else
    say "$program: left out, CUDA's libraries are not here, or were not where it was built"
  fi
}
with_libraries gemv_step "a cuBLAS call and a kernel, replayed, against a plain loop" --devices cuda:0 --steps 300
with_libraries cholesky "a matrix in tiles on all GPUs, against a plain factor" --devices cuda --size 128
say "tutorial, primer and other small examples: each program checks its own results"
mapfile -t small < <("$bundle/examples/small_examples" --list | grep -E '^(tutorial_|primer_|mlp$|log_analytics$|k_means$)')
for wanted in tutorial_ primer_ mlp log_analytics k_means; do
  [[ " ${small[*]-}" == *" $wanted"* ]] || { echo "   small_examples lacks $wanted"; failed=1; }
done
for program in ${small[@]+"${small[@]}"}; do
  if ! PENSTOCK_DEVICES=cuda timeout -k 10 400 "$bundle/examples/small_examples" "$program" >"$results/$program.out" 2>&1; then
    echo "   $program failed:"
    failed=1
  fi
  sed 's/^/   /' "$results/$program.out"
done
cuda_outcomes OK >"$results/cuda-passed"
cuda_outcomes FAILED >"$results/cuda-failed"
cuda_outcomes SKIPPED >"$results/cuda-skipped"
ran=$(($(wc -l <"$results/cuda-passed") + $(wc -l <"$results/cuda-failed")))
say "gpu-test: $ran CUDA tests ran, $(wc -l <"$results/cuda-failed") failed, $(wc -l <"$results/cuda-skipped") skipped"
sed 's/^/   skipped: /' "$results/cuda-skipped"
[[ $ran -gt 0 ]] || { say "gpu-test: FAILED: not one CUDA test ran"; exit 1; }
[[ -z $failed ]] || { say "gpu-test: FAILED"; exit 1; }
results_id >"$results/id"
say "gpu-test: passed"
