// The conversion of CUDA errors to Status. Needs no GPU and no driver. The codes stand here as numbers, as in the
// project's table of error classes, so that a slip in the code's own table shows.
#include "src/driver/cuda/cuda_status.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "penstock/cuda.h"
#include "src/base/status.h"

namespace penstock::driver::cuda_status_test {
namespace {

struct Expected {
  std::vector<int> codes;
  absl::StatusCode code;
  bool fatal;
};

const Expected kTable[] = {
    {{226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}, absl::StatusCode::kInternal, true},
    {{214}, absl::StatusCode::kDataLoss, true},
    {{220, 999}, absl::StatusCode::kUnavailable, true},
    {{4, 34, 35, 46, 709, 802, 803, 804}, absl::StatusCode::kUnavailable, false},
    {{100, 101}, absl::StatusCode::kNotFound, false},
    {{2}, absl::StatusCode::kResourceExhausted, false},
    {{1, 9, 12, 400, 701, 720}, absl::StatusCode::kInvalidArgument, false},
    {{3, 98, 200, 201, 209, 218, 222, 712, 713, 800, 801}, absl::StatusCode::kFailedPrecondition, false},
    {{600, 704, 705}, absl::StatusCode::kFailedPrecondition, false},
    {{900, 901, 902, 903, 904, 905, 906, 907, 908, 910}, absl::StatusCode::kFailedPrecondition, false},
    {{30, 909, 304}, absl::StatusCode::kInternal, false},
};

TEST(CudaStatusTest, EveryClassHasItsCodeAndFatalFlag) {
  for (const Expected& row : kTable) {
    for (const int number : row.codes) {
      SCOPED_TRACE(number);
      const absl::Status status = ToStatus(static_cast<cudaError_t>(number), "doing it");
      EXPECT_EQ(status.code(), row.code);
      const std::optional<base::DeviceFault> fault = base::FaultOf(status);
      ASSERT_TRUE(fault.has_value());
      EXPECT_EQ(fault->cuda_code, number);
      EXPECT_EQ(fault->fatal, row.fatal);
    }
  }
}

TEST(CudaStatusTest, UsersConversionAgreesWithTheDrivers) {
  for (const Expected& row : kTable) {
    for (const int number : row.codes) {
      SCOPED_TRACE(number);
      const auto code = static_cast<cudaError_t>(number);
      const absl::Status ours = ToStatus(code, "doing it"), theirs = penstock::ToStatus(code, "doing it");
      EXPECT_EQ(ours, theirs);  // compares payloads too
    }
  }
  EXPECT_TRUE(penstock::ToStatus(cudaSuccess).ok());
}

TEST(CudaStatusTest, SuccessIsOk) { EXPECT_TRUE(ToStatus(cudaSuccess, "doing it").ok()); }

TEST(CudaStatusTest, MessageSaysWhatWhyAndWhatToDo) {
  const absl::Status status = ToStatus(cudaErrorNoKernelImageForDevice, "loading a kernel on cuda:0 (sm_90)");
  EXPECT_EQ(base::Str(status.message()),
            "loading a kernel on cuda:0 (sm_90) failed; no kernel image is available for execution on the device "
            "(cudaErrorNoKernelImageForDevice, 209); compile the kernel for this device's architecture "
            "(CMAKE_CUDA_ARCHITECTURES)");
}

TEST(CudaStatusTest, MessageWithoutAdviceEndsAfterTheReason) {
  EXPECT_EQ(base::Str(ToStatus(cudaErrorInvalidValue, "doing it").message()),
            "doing it failed; invalid argument (cudaErrorInvalidValue, 1)");
}

}  // namespace
}  // namespace penstock::driver::cuda_status_test
