#!/usr/bin/env bash
# Collects what runs on another machine: programs, stripped, and every shared library outside glibc and CUDA.
#
#   scripts/bundle.sh BUILD BUNDLE
#
# BUNDLE/{tests,examples,bench}/  programs, which find their libraries by $ORIGIN/../lib; not those of `without` below
# BUNDLE/lib/                     shared libraries
# BUNDLE/photos/                  photographs, for bench/photos.sh
# BUNDLE/COMMIT                   the commit it was built from, with -dirty if the tree had changes
# BUNDLE.tar.xz                   all of it, to carry; ./run gpu-test and gpu-bench unpack it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$1 bundle=$2
most=40 # MiB, packed; each program holds the library, and a large dictionary keeps one copy

rm -rf "$bundle"
mkdir -p "$bundle/lib"
# They need no GPU (./run gpu-build and ./run bench run them), or (photos_test) look for the photo program and its photographs
# where they were built.
without=(photos_test annotate_tests tools_tests graph_tests penstock_tests replay_tests library_factories_tests no_gpu_tests plan growth declare_again
  flow_graph host_algorithms)
for kind in tests examples bench; do
  [[ -d $build/bin/$kind ]] || continue
  mkdir -p "$bundle/$kind"
  find "$build/bin/$kind" -maxdepth 1 -type f -perm -u+x -exec cp -t "$bundle/$kind" {} +
  (cd "$bundle/$kind" && rm -f "${without[@]}" cookbook_workspace)
done
mapfile -t programs < <(find "$bundle" -mindepth 2 -type f)
[[ ${#programs[@]} -gt 0 ]] || { echo "no programs in $build/bin"; exit 1; }
strip "${programs[@]}"

# "name path" of each shared library that a program loads and the other machine need not have.
carried() {
  ldd "$@" | awk '
    $2 == "=>" && $1 !~ /^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl)|libcuda|libcudart|libcublas.*|libnv.*|libcu[a-z]+)\.so/ {
      print $1, $3 == "not" ? "MISSING" : $3
    }' | sort -u
}
while read -r name path; do
  [[ $path != MISSING ]] || { echo "$name is not found on this machine"; exit 1; }
  cp -L "$path" "$bundle/lib/$name"
done < <(carried "${programs[@]}")
strip --strip-unneeded "$bundle"/lib/*

strays=$(carried "${programs[@]}" | grep -v " .*/$(basename "$bundle")/" || true)
[[ -z $strays ]] || { echo "found outside the bundle:"; echo "$strays"; exit 1; }

# The photo job's benchmark is a script around the example; gpu-bench runs it like the programs.
if [[ -d $bundle/bench && -d $bundle/examples ]]; then
  install -m 755 bench/photos.sh "$bundle/bench/photos.sh"
  cp -r examples/photos/photos "$bundle/photos"
fi

commit=$(git rev-parse HEAD 2>/dev/null) || commit=unknown
[[ -z $(git status --porcelain 2>/dev/null) ]] || commit+=-dirty
echo "$commit" >"$bundle/COMMIT"

tar -C "$(dirname "$bundle")" -I "xz -T1 --lzma2=preset=1,dict=64MiB" -cf "$bundle.tar.xz" "$(basename "$bundle")"

mib() { echo $(($(du -sk "$1" | cut -f1) / 1024)); }
echo "$bundle: ${#programs[@]} programs, $(find "$bundle/lib" -type f | wc -l) libraries, $(mib "$bundle") MiB," \
  "packed $(mib "$bundle.tar.xz") MiB, commit $commit"
[[ $(mib "$bundle.tar.xz") -lt $most ]] || { echo "the packed bundle must stay under $most MiB"; exit 1; }
