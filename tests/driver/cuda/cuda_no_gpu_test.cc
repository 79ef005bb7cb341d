// Machines without a usable GPU. Runs everywhere: where there is a GPU it is hidden, in a process of its own.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "src/base/status.h"
#include "src/driver/cuda/cuda_driver.h"

namespace penstock::driver::cuda_no_gpu_test {
namespace {

// With what CUDA itself says.
void PrintAndExit(const absl::Status& status) {
  int count = 0;
  const int cuda = cudaGetDeviceCount(&count);
  std::fprintf(stderr, "cuda=%d code=%d %s\n", cuda, static_cast<int>(status.code()),
               base::Str(status.message()).c_str());
  std::exit(0);
}

class NoGpuDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// NotFound (5) where there is a driver, Unavailable (14) where there is none.
constexpr char kReason[] =
    "(cuda=100 code=5 looking for CUDA devices failed; no CUDA-capable device is detected .*CUDA_VISIBLE_DEVICES"
    "|cuda=35 code=14 looking for CUDA devices failed; CUDA driver version is insufficient .*install release 580 or "
    "newer)"
    ".*use host devices";

TEST_F(NoGpuDeathTest, CountSaysWhyThereIsNone) {
  EXPECT_EXIT(
      {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        PrintAndExit(CudaDeviceCount().status());
      },
      ::testing::ExitedWithCode(0), kReason);
}

TEST_F(NoGpuDeathTest, CreationSaysWhyThereIsNone) {
  EXPECT_EXIT(
      {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        PrintAndExit(CreateCudaDriver({.ordinals = {0}}).status());
      },
      ::testing::ExitedWithCode(0), kReason);
}

}  // namespace
}  // namespace penstock::driver::cuda_no_gpu_test
