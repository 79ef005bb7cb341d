// Whether the process remembers that it lost its devices. Each test runs in a process of its own, because that memory
// is the process's. Needs no GPU and no driver.
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/driver/cuda/cuda_status.h"

namespace penstock::driver::cuda_lost_test {
namespace {

class CudaLostDeathTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

bool LostAfter(int number) {
  if (CudaIsLost()) std::exit(3);
  Forget(static_cast<cudaError_t>(number));
  return CudaIsLost();
}

TEST_P(CudaLostDeathTest, RemembersAFatalFault) {
  EXPECT_EXIT(std::exit(LostAfter(GetParam()) ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Fatal, CudaLostDeathTest, ::testing::Values(700, 719, 214, 999));

class CudaNotLostDeathTest : public CudaLostDeathTest {};

TEST_P(CudaNotLostDeathTest, TakesAnythingElseAsSurvivable) {
  EXPECT_EXIT(std::exit(LostAfter(GetParam()) ? 1 : 0), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Survivable, CudaNotLostDeathTest, ::testing::Values(0, 1, 2, 4, 600, 709));

}  // namespace
}  // namespace penstock::driver::cuda_lost_test
