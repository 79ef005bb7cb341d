// libFuzzer's way in, for profiles. `./run fuzz 3600 profile` builds and starts it; tests/fuzz/profiles is where it
// begins.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/check_profile_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const penstock::fuzz::ProfileOutcome outcome =
      penstock::fuzz::CheckProfileBytes({reinterpret_cast<const char*>(data), size});
  if (outcome.problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.problem.c_str());
  std::abort();  // so that the input is kept
}
