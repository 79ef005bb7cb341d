// How much pinned memory a runtime may have: the option, the environment, the default.
#include "src/runtime/core/pinned_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "src/base/limits.h"
#include "tests/support/held_graph.h"

namespace penstock::pinned_bytes_test {
namespace {

using runtime::ParseBytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseBytes, TakesNumbersWithAndWithoutASuffix) {
  for (const auto& [text, bytes] :
       {std::pair("0", int64_t{0}), std::pair("1", int64_t{1}), std::pair("3K", int64_t{3072}),
        std::pair("256M", int64_t{268435456}), std::pair("2G", int64_t{2147483648}),
        std::pair("8589934591G", INT64_MAX - 1073741823), std::pair("9223372036854775807", INT64_MAX)}) {
    const absl::StatusOr<int64_t> read = ParseBytes(text);
    ASSERT_OK(read.status()) << text;
    EXPECT_EQ(*read, bytes) << text;
  }
}

TEST(ParseBytes, RefusesAllElseAndSaysWhatToWrite) {
  for (const char* const text : {"", "M", "-1", "+1", " 1", "1 ", "1.5G", "1k", "1MB", "1KK", "0x10", "half",
                                 "9223372036854775808", "8589934592G", "99999999999999999999"}) {
    const absl::Status refused = ParseBytes(text).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Text(refused),
                AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr("such as 268435456, 256M or 2G")));
  }
}

class PinnedBytes : public testing::Test {
 protected:
  void TearDown() override { unsetenv("PENSTOCK_PINNED_BYTES"); }
  static absl::StatusOr<Runtime> Make(int64_t bytes) {
    return Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1, .pinned_bytes = bytes});
  }
};

TEST_F(PinnedBytes, AreHalfOfThisComputersMemoryByDefault) {
  struct sysinfo computer{};
  ASSERT_EQ(sysinfo(&computer), 0);
  if (base::MemoryOfProcess().of_cgroup) GTEST_SKIP() << "a cgroup leaves less";
  const int64_t half = static_cast<int64_t>(computer.totalram) * computer.mem_unit / 2;
  EXPECT_EQ(Make(0)->pinned_memory().budget, half);
  setenv("PENSTOCK_PINNED_BYTES", "0", 1);
  EXPECT_EQ(Make(1 << 20)->pinned_memory().budget, half);
}

TEST_F(PinnedBytes, TheEnvironmentWinsOverTheOption) {
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 3 << 20);
  setenv("PENSTOCK_PINNED_BYTES", "5M", 1);
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 5 << 20);
  setenv("PENSTOCK_PINNED_BYTES", "", 1);
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 3 << 20);
}

TEST_F(PinnedBytes, MalformedOnesAreRefusedAtCreate) {
  EXPECT_EQ(Make(-1).status().code(), absl::StatusCode::kInvalidArgument);
  setenv("PENSTOCK_PINNED_BYTES", "lots", 1);
  const absl::Status refused = Make(0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("PENSTOCK_PINNED_BYTES: 'lots' is no number of bytes"));
}

}  // namespace
}  // namespace penstock::pinned_bytes_test
