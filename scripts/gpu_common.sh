# Shared by gpu_test.sh and gpu_bench.sh, which run build/gpu-bundle on a machine that may have nothing but bash, awk,
# tar, xz and a GPU. Sourced from the project's root.

bundle=build/gpu-bundle
results=$bundle/results

say() { printf '== %s\n' "$*"; }
cannot() { printf './run: %s\n' "$*" >&2; exit 2; }

need_bundle_and_gpu() {
  [[ -f $bundle/COMMIT || ! -f $bundle.tar.xz ]] || tar -C "$(dirname "$bundle")" -xJf "$bundle.tar.xz"
  [[ -f $bundle/COMMIT ]] || cannot "$1: no $bundle; ./run gpu-build makes it, here or on a machine with nvcc"
  [[ -e /dev/nvidiactl ]] || nvidia-smi -L >/dev/null 2>&1 || cannot "$1: no NVIDIA GPU here"
  local head
  head=$(git rev-parse HEAD 2>/dev/null) || return 0
  [[ $(cat "$bundle/COMMIT") == "$head"* ]] || say "note: the bundle is of commit $(cat "$bundle/COMMIT"), the tree is at $head"
}

# What the results belong to: this bundle, on this machine since it started.
results_id() { cat "$bundle/COMMIT" /proc/sys/kernel/random/boot_id; stat -c %Y "$bundle/COMMIT"; }

# outcomes STATUS LOG...: names of tests that ended with STATUS (OK, FAILED or SKIPPED), each once.
outcomes() {
  local status=$1
  shift
  awk -v status="$status" '
    $0 ~ "^\\[ +" status " +\\] .* \\([0-9]+ ms\\)$" { sub(/^\[[^]]*\] /, ""); sub(/[ ,].*/, ""); print }
  ' "$@" | sort -u
}

# cuda_outcomes STATUS: the same of tests that use a CUDA device: all of gpu_tests, none of no_gpu_tests, elsewhere those
# with cuda in the name.
cuda_outcomes() {
  local log
  for log in "$results"/*.log; do
    [[ -e $log ]] || continue
    case $log in
      */gpu_tests.log) outcomes "$1" "$log" ;;
      */no_gpu_tests.log) ;;
      *) outcomes "$1" "$log" | grep -i cuda || true ;;
    esac
  done
}
