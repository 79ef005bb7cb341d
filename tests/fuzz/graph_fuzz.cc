// libFuzzer's way in. `./run fuzz` builds and starts it; tests/fuzz/corpus is what it has found worth keeping.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/check_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const penstock::fuzz::Outcome outcome = penstock::fuzz::CheckBytes({data, size});
  if (outcome.problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.problem.c_str());
  std::abort();  // so that the input is kept
}
