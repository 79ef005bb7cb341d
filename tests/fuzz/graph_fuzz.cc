// libFuzzer's way in, for graphs, constructs or algorithms. `./run fuzz` builds and starts it; tests/fuzz/corpus and
// tests/fuzz/algorithms are what it has found worth keeping.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/check_algorithm_bytes.h"
#include "tests/fuzz/check_bytes.h"
#include "tests/fuzz/check_control_bytes.h"

#ifndef PENSTOCK_FUZZED
#define PENSTOCK_FUZZED CheckBytes
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const penstock::fuzz::Outcome outcome = penstock::fuzz::PENSTOCK_FUZZED({data, size});
  if (outcome.problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.problem.c_str());
  std::abort();  // so that the input is kept
}
