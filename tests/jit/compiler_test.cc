// Several sources at once: each is compiled once, kept on disk, and found there by the next process.
#include "src/jit/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "src/jit/cache.h"
#include "tests/support/environment.h"
#include "tests/support/nvrtc.h"
#include "tests/support/status.h"
#include "tests/support/temporary_folder.h"

namespace penstock::jit::compiler_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Source::Parts SetTo(int value) {
  return {"__global__ void set(int* x) { *x = " + std::to_string(value) + "; }", "set", {}};
}

class JitCompiler : public testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_SKIP_WITHOUT_NVRTC();
    ForgetCompiled();
    before_ = CountsOfCompiled();
  }
  static auto Compile(const std::vector<Source::Parts>& sources, const CompileHooks& hooks = {}) {
    std::vector<WantedKernel> wanted;
    for (const Source::Parts& source : sources) wanted.push_back({&source, "sm_90"});
    return CompileSources(wanted, hooks);
  }
  int64_t compiled() const { return CountsOfCompiled().compiled - before_.compiled; }
  int64_t from_disk() const { return CountsOfCompiled().from_disk - before_.from_disk; }

  const TemporaryFolder root_;
  const std::string folder_ = root_.path() + "/jit";
  const EnvironmentScope cache_{"PENSTOCK_JIT_CACHE", folder_};
  CompileCounts before_;
};

TEST_F(JitCompiler, CompilesEachSourceOnceInAProcess) {
  const auto first = *Compile({SetTo(1), SetTo(2), SetTo(1)});
  ASSERT_EQ(first.size(), 3u);
  for (const auto& image : first) ASSERT_OK(image.status());
  EXPECT_EQ(*first[0], *first[2]) << "the same object";
  EXPECT_NE(**first[0], **first[1]);
  EXPECT_EQ(compiled(), 2);
  EXPECT_EQ(*Compile({SetTo(2)})->at(0), *first[1]);
  EXPECT_EQ(compiled(), 2);
  EXPECT_EQ(from_disk(), 0);
}

TEST_F(JitCompiler, CompilesASourceOnceForThreadsThatWantItAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};  // threads that have got it
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] { good += Compile({SetTo(3)})->at(0).ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
  EXPECT_EQ(compiled(), 1);
}

TEST_F(JitCompiler, FindsOnDiskWhatAnEarlierProcessCompiled) {
  const KernelImage made = **Compile({SetTo(1)})->at(0);
  ForgetCompiled();
  EXPECT_EQ(**Compile({SetTo(1)})->at(0), made);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(from_disk(), 1);
  const std::vector<Cache::Entry> kept = Cache::Open(folder_)->List();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].kernel, "set");
  EXPECT_EQ(kept[0].architecture, "sm_90");
}

TEST_F(JitCompiler, CompilesAgainWhatIsDamagedOnDisk) {
  (void)Compile({SetTo(1)});
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) std::filesystem::resize_file(entry, 100);
  ForgetCompiled();
  EXPECT_OK(Compile({SetTo(1)})->at(0).status());
  EXPECT_EQ(compiled(), 2);
  ForgetCompiled();
  EXPECT_OK(Compile({SetTo(1)})->at(0).status());
  EXPECT_EQ(compiled(), 2) << "it has been replaced";
}

TEST_F(JitCompiler, KeepsNothingOfASourceThatReadsFiles) {
  Source::Parts parts = SetTo(1);
  parts.options.options = {"-I" + root_.path()};
  for (int i = 1; i <= 2; ++i) {
    EXPECT_OK(Compile({parts})->at(0).status());
    EXPECT_EQ(compiled(), i);
  }
  EXPECT_THAT(Cache::Open(folder_)->List(), IsEmpty());
}

TEST_F(JitCompiler, DoesWithoutACacheAndWarnsOnce) {
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  std::vector<std::string> logged;
  const CompileHooks hooks{.log = [&](LogLevel level, std::string_view text) {
    EXPECT_EQ(level, LogLevel::kWarning);
    logged.emplace_back(text);
  }};
  EXPECT_OK(Compile({SetTo(1)}, hooks)->at(0).status());
  EXPECT_OK(Compile({SetTo(2)}, hooks)->at(0).status());
  EXPECT_THAT(logged, ElementsAre(HasSubstr("compiled kernels are not kept for the next process: others may write to " +
                                            folder_)));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(JitCompiler, TellsWarningsOfTheCompiler) {
  std::vector<std::string> logged;
  const CompileHooks hooks{.log = [&](LogLevel, std::string_view text) { logged.emplace_back(text); }};
  (void)Compile({{"__global__ void k(int* x) { int unused; *x = 1; }", "k", {}}}, hooks);
  EXPECT_THAT(logged, ElementsAre(HasSubstr("NVRTC of kernel 'k': source.cu(1): warning")));
}

TEST_F(JitCompiler, MayBeCalledByAHookForWarningsForTheSameSource) {
  const Source::Parts warns{"__global__ void k(int* x) { int unused; *x = 1; }", "k", {}};
  absl::Status again = absl::UnknownError("");
  const CompileHooks hooks{.log = [&](LogLevel, std::string_view) { again = Compile({warns})->at(0).status(); }};
  EXPECT_OK(Compile({warns}, hooks)->at(0).status());
  EXPECT_OK(again);
}

TEST_F(JitCompiler, IsRefusedToAHookThatIsToldOfProgress) {
  absl::Status again;
  const CompileHooks hooks{.tell = [&](size_t, size_t) {
    again = Compile({SetTo(1)}).status();
    return absl::OkStatus();
  }};
  EXPECT_OK(Compile({SetTo(1)}, hooks)->at(0).status());
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(again), HasSubstr("compile them before or afterwards"));
  EXPECT_OK(Compile({SetTo(2)})->at(0).status());
}

TEST_F(JitCompiler, SaysThatThereIsNoMemory) {
  const Source::Parts warns{"__global__ void k(int* x) { int unused; *x = 1; }", "k", {}};
  const auto results = *Compile({warns, SetTo(1)}, {.log = [](LogLevel, std::string_view) { throw std::bad_alloc(); }});
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(results[1].status());
  const absl::Status told =
      Compile({SetTo(2)}, {.tell = [](size_t, size_t) -> absl::Status { throw std::bad_alloc(); }}).status();
  EXPECT_EQ(told.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(Compile({SetTo(2)})->at(0).status());
}

TEST_F(JitCompiler, GivesEachSourceItsOwnError) {
  const auto results = *Compile({SetTo(1), {"wrong", "k", {}}, SetTo(2)});
  EXPECT_OK(results[0].status());
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(results[2].status());
  EXPECT_EQ(Compile({{"wrong", "k", {}}})->at(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(compiled(), 4) << "a failure is not kept";
}

TEST_F(JitCompiler, EndsWhenItsCallerSaysSo) {
  std::vector<Source::Parts> many;
  for (int i = 0; i < 40; ++i) many.push_back(SetTo(i));
  size_t total = 0;
  int told = 0;
  const CompileHooks hooks{.tell = [&](size_t, size_t of) {
    total = of;
    return ++told == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  }};
  const absl::Status ended = Compile(many, hooks).status();
  EXPECT_EQ(ended, absl::CancelledError("enough"));
  EXPECT_EQ(total, many.size());
  EXPECT_EQ(told, 3) << "once it has ended, nobody is told";
  EXPECT_LT(compiled(), 40);
  EXPECT_OK(Compile({many[0]})->at(0).status());
}

}  // namespace
}  // namespace penstock::jit::compiler_test
