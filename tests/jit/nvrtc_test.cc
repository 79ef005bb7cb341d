// NVRTC, which needs no GPU: what it makes of sources, and what it says of wrong ones.
#include "src/jit/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/nvrtc.h"
#include "tests/support/status.h"

namespace penstock::jit::nvrtc_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kText =
    "template <class T>\n"
    "__global__ void axpy(T a, const T* x, T* y, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] += a * x[i];\n"
    "}\n"
    "extern \"C\" __global__ void plain(int* x) { *x = 1; }\n"
    "__global__ void unqualified(int* x) { *x = 2; }\n"
    "namespace my { __global__ void kernel(int* x) { *x = VALUE; } }\n";

absl::StatusOr<Nvrtc::Result> Compile(const Source::Parts& parts, const std::string& architecture = "sm_90") {
  return (*Nvrtc::Get())->Compile({&parts, architecture}, [] { return false; });
}
absl::StatusOr<Nvrtc::Result> Compile(const std::string& kernel) {
  return Compile(Source::Parts{kText, kernel, {.options = {"-DVALUE=3"}}});
}

TEST(Nvrtc, CompilesForADeviceThatIsNotThere) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  for (const auto& [kernel, symbol] :
       std::vector<std::pair<std::string, std::string>>{{"axpy<float>", "_Z4axpyIfEvT_PKS0_PS0_i"},
                                                        {"plain", "plain"},
                                                        {"unqualified", "_Z11unqualifiedPi"},
                                                        {"my::kernel", "_ZN2my6kernelEPi"}}) {
    const auto result = Compile(kernel);
    ASSERT_OK(result.status());
    EXPECT_EQ(result->kernel.symbol, symbol);
    EXPECT_THAT(result->kernel.image, StartsWith("\x7f"
                                                 "ELF"));
    EXPECT_THAT(result->kernel.image, HasSubstr(symbol));
  }
}

TEST(Nvrtc, GivesTheHeadersToTheText) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const Source::Parts parts{"#include \"mine/value.h\"\n__global__ void k(int* x) { *x = kValue; }",
                            "k",
                            {.headers = {{"mine/value.h", "constexpr int kValue = 7;"}}}};
  EXPECT_OK(Compile(parts).status());
}

TEST(Nvrtc, SaysWhatIsWrongByTheLinesOfTheText) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const absl::Status refused =
      Compile(Source::Parts{"\n\n__global__ void k(int* x) { *x = nothing; }", "k", {.file = "wrong.cu"}}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), StartsWith("kernel 'k' of wrong.cu does not compile for sm_90; NVRTC 13."));
  EXPECT_THAT(Text(refused), HasSubstr("\nwrong.cu(3): error: identifier \"nothing\" is undefined"));
}

TEST(Nvrtc, SaysThatThereIsNoSuchKernelOrOptionOrArchitecture) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  EXPECT_THAT(Text(Compile("nobody").status()), HasSubstr("identifier \"nobody\" is undefined"));
  const Source::Parts option{kText, "plain", {.options = {"-DVALUE=3", "--no-such-option"}}};
  EXPECT_THAT(Text(Compile(option).status()), HasSubstr("unrecognized option --no-such-option"));
  const Source::Parts good{kText, "plain", {.options = {"-DVALUE=3"}}};
  EXPECT_THAT(
      Text(Compile(good, "sm_12").status()),
      HasSubstr("does not compile for sm_12; NVRTC 13.0 says:\nnvrtc: error: invalid value for --gpu-architecture"));
  const Source::Parts virtual_only{kText, "plain", {.options = {"-DVALUE=3", "-arch=compute_90"}}};
  EXPECT_THAT(Text(Compile(virtual_only).status()), HasSubstr("gives no image for a device"));
}

TEST(Nvrtc, TellsWarnings) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const auto result = Compile(Source::Parts{"__global__ void k(int* x) { int unused; *x = 1; }", "k", {}});
  ASSERT_OK(result.status());
  EXPECT_THAT(result->log, HasSubstr("source.cu(1): warning"));
}

TEST(Nvrtc, StopsWhenAskedTo) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const Source::Parts parts{kText, "plain", {.options = {"-DVALUE=3"}}};
  int asked = 0;
  const auto stopped = (*Nvrtc::Get())->Compile({&parts, "sm_90"}, [&] { return ++asked == 2; });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2) << "once it is stopped, nobody is asked again";
}

TEST(Nvrtc, AsksOnTheCallingThreadOnly) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  std::string text;  // of several kernels, which NVRTC parts among its threads
  for (int k = 0; k < 16; ++k) {
    text += "extern \"C\" __global__ void k" + std::to_string(k) +
            "(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = sinf(x[i]) * expf(x[i + 1]); }\n";
  }
  const Source::Parts parts{text, "k0", {.options = {"--split-compile=4"}}};
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<int> asked{0}, elsewhere{0};
  const auto made = (*Nvrtc::Get())->Compile({&parts, "sm_90"}, [&] {
    ++(std::this_thread::get_id() == own ? asked : elsewhere);
    return false;
  });
  EXPECT_OK(made.status());
  EXPECT_GT(asked, 0);
  EXPECT_EQ(elsewhere, 0);
}

TEST(Nvrtc, SaysWhereItLooked) {
  const absl::Status none = Nvrtc::Load({"/no such folder/a.so", "/no other folder/b.so"}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(none), HasSubstr("/no such folder/a.so"));
  EXPECT_THAT(Text(none), HasSubstr("/no other folder/b.so"));
  EXPECT_THAT(Text(Nvrtc::Load({"libc.so.6", "/no such folder/a.so"}).status()), HasSubstr("has no nvrtcGetErrorStr"));
}

TEST(Nvrtc, SaysWhatToInstallWhereItIsNot) {
  const absl::Status none = Nvrtc::Load({"/no such folder/libnvrtc.so.13"}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(none), HasSubstr("install NVRTC of CUDA 13"));
  EXPECT_THAT(Text(none), HasSubstr("/no such folder/libnvrtc.so.13"));
  const absl::Status other = Nvrtc::Load({"libc.so.6"}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(other), HasSubstr("has no nvrtcGetErrorString; install NVRTC of CUDA 13"));
}

}  // namespace
}  // namespace penstock::jit::nvrtc_test
