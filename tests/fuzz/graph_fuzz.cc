// libFuzzer's way in, for graphs or for constructs. `./run fuzz` builds and starts it; tests/fuzz/corpus is what it has
// found worth keeping of graphs.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/check_bytes.h"
#include "tests/fuzz/check_control_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
#if defined(PENSTOCK_FUZZ_CONSTRUCTS)
  const penstock::fuzz::Outcome outcome = penstock::fuzz::CheckControlBytes({data, size});
#else
  const penstock::fuzz::Outcome outcome = penstock::fuzz::CheckBytes({data, size});
#endif
  if (outcome.problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.problem.c_str());
  std::abort();  // so that the input is kept
}
