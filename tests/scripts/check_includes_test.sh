#!/usr/bin/env bash
# Holds scripts/check_includes.sh to its rules: each row is a file with one include that must be refused, with words of
# the reason; after that, a tree of allowed includes that must pass.
#
#   check_includes_test.sh ROOT      ROOT: the project
set -euo pipefail

check=$1/scripts/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

put() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '#include %s\n' "$2" >"$tree/$1"
}

while IFS='|' read -r file include reason; do
  [[ -n $file ]] || continue
  rm -rf "${tree:?}"/*
  put "$file" "$include"
  if output=$("$check" "$tree"); then
    echo "not refused: $file includes $include"
    failed=1
  elif [[ $output != *"$reason"* || $output != *"$file:1:"* ]]; then
    echo "refused for another reason: $file includes $include: $output"
    failed=1
  fi
done <<'ROWS'
include/penstock/a.h|"graph/plan/plan.h"|include/ includes only include/
include/penstock/a.h|<cuda_runtime.h>|has cuda, or the name of a library
include/penstock/a.h|<cufft.h>|has cuda, or the name of a library
include/penstock/a.h|"absl/strings/str_cat.h"|only Status and StatusOr
include/penstock/a.h|"spdlog/spdlog.h"|only in src/base/log.cc
graph/a.cc|"src/driver/driver.h"|graph/ includes graph/, include/ and src/base
graph/a.cc|"penstock/cuda_launch.h"|only src/driver/cuda/ includes public CUDA headers
src/base/a.cc|"penstock/cublas.h"|only src/driver/cuda/ includes public CUDA headers
graph/a.cc|<thread>|knows no thread
graph/a.cc|"cuda_runtime.h"|CUDA headers only in
src/base/a.cc|"src/host/event_count.h"|src/base includes only
src/base/a.cc|<spdlog/spdlog.h>|only in src/base/log.cc
src/host/a.cc|"src/driver/driver.h"|src/host includes
src/driver/driver.h|"graph/plan/plan.h"|src/driver includes
src/driver/host/a.cc|"src/driver/cuda/b.h"|src/driver/host includes
src/driver/host/a.cc|"src/host/worker_pool.h"|src/driver/host includes
src/driver/cuda/a.cc|"src/driver/host/b.h"|src/driver/cuda includes
src/memory/a.cc|"src/runtime/b.h"|src/memory includes
src/memory/a.cc|<hwloc.h>|hwloc only in
src/observe/a.cc|"src/runtime/b.h"|src/observe includes
src/runtime/core/a.cc|"tests/b.h"|src/runtime/core includes no room but itself
src/runtime/core/a.cc|"src/runtime/state/b.h"|src/runtime/core includes no room but itself
src/runtime/program/a.cc|"src/runtime/core/b.h"|src/runtime/program includes no room but itself
src/runtime/cache/a.cc|"src/runtime/pipeline/b.h"|src/runtime/cache includes no room but itself
src/runtime/a.cc|"src/base/b.h"|src/runtime has the rooms named
graph/plan/a.cc|"graph/passes/b.h"|graph/plan includes
graph/passes/a.cc|"graph/memory/b.h"|graph/passes includes
src/runtime/api/a.cc|<nlohmann/json.hpp>|only in programs and tests
src/runtime/api/a.cc|"b.h"|by its path
src/runtime/api/a.cc|"../base/b.h"|no include goes upwards
src/runtime/api/a.cc|<cub/cub.cuh>|CUDA headers only in
examples/saxpy/a.cc|"src/base/b.h"|examples and bench include only
examples/saxpy/a.cc|<gtest/gtest.h>|only in tests
bench/a.cu|"examples/photos/b.h"|examples and bench include only
ROWS

for start in 'std::thread([] {});' 'std::thread t([] {});' 'std::jthread t;' 'threads_.emplace_back([] {});' \
  'pthread_create(&t, nullptr, f, nullptr);'; do
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/src/host"
  printf '%s\n' "$start" >"$tree/src/host/a.cc"
  if output=$("$check" "$tree") || [[ $output != *"started by base::StartThread"* ]]; then
    echo "not refused: $start"
    failed=1
  fi
done

rm -rf "${tree:?}"/*
put include/penstock/a.h '"absl/status/statusor.h"'
put include/penstock/cuda_a.h '<cuda_runtime.h>'
put include/penstock/cublas.h '<cublas_v2.h>'
put graph/a.cc '"src/base/status.h"'
put src/base/log.cc '<spdlog/spdlog.h>'
put src/driver/driver.h '"src/base/status.h"'
put src/driver/cuda/a.cc '<cuda_runtime.h>'
put src/driver/host/a.cc '"src/host/event_count.h"'
put src/memory/a.cc '"src/driver/driver.h"'
put src/runtime/api/a.cc '"graph/plan/plan.h"'
put examples/saxpy/a.cc '"b.h"'
put bench/a.cu '<cuda_runtime.h>'
put tests/a.cc '"src/runtime/b.h"'
if ! output=$("$check" "$tree"); then
  echo "refused, but allowed: $output"
  failed=1
fi
exit "$failed"
