// The tests of this program are about streams, unless they say otherwise (ModeScope): they count calls, hold a device
// up, or wait in callables, which no capture may.
#include <cstdlib>

namespace {

[[maybe_unused]] const int kSet = setenv("PENSTOCK_MODE", "stream", /*overwrite=*/0);

}  // namespace
