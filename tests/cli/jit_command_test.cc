// penstock jit: what it shows and removes of the kernels on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "nlohmann/json.hpp"
#include "src/jit/cache.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/environment.h"

namespace penstock::cli::jit_command_test {
namespace {

using jit::Cache;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

class PenstockJit : public testing::Test {
 protected:
  void Keep(const std::string& kernel, size_t bytes) {
    Cache::Open(folder_)->Keep(jit::Sha256Of(kernel), {.kernel = kernel, .architecture = "sm_90"},
                               {"_Z", std::string(bytes, 'x')});
  }

  const TemporaryFolder root_;
  const std::string folder_ = root_.Path("jit");
  const EnvironmentScope cache_{"PENSTOCK_JIT_CACHE", folder_};
};

TEST_F(PenstockJit, ListsKernelsWithTheirSizesAndTheSum) {
  Keep("axpy<float>", 10'000);
  Keep("evil\n\x1b[2Jname", 20'000);
  const Ran ran = RunPenstock({"jit", "list"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_THAT(ran.out, HasSubstr("kernel"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("axpy<float> +sm_90 +9\\.[0-9]+ KiB  20[0-9-]+ [0-9:]+\n"));
  EXPECT_THAT(ran.out, HasSubstr("evil\\x0a\\x1b[2Jname"));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("\n2 kernels, 29\\.[0-9]+ KiB of at most 256 MiB, in " + folder_ + "\n$"));
}

TEST_F(PenstockJit, ListsTheSameAsJson) {
  Keep("axpy<float>", 10'000);
  Keep("\xff", 10'000);
  const auto json = nlohmann::json::parse(RunPenstock({"jit", "list", "--json"}).out);
  EXPECT_EQ(json.at("folder"), folder_);
  ASSERT_EQ(json.at("kernels").size(), 2u);
  for (const auto& kernel : json.at("kernels")) {
    EXPECT_EQ(kernel.at("architecture"), "sm_90");
    EXPECT_GT(kernel.at("bytes"), 10'000);
    EXPECT_GT(kernel.at("used"), 1'600'000'000);
  }
}

TEST_F(PenstockJit, RemovesThemAndSaysHowMany) {
  Keep("a", 10'000);
  Keep("b", 10'000);
  EXPECT_THAT(RunPenstock({"jit", "clear"}).out, MatchesRegex("removed 2 kernels, 19\\.[0-9]+ KiB, from .*\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(RunPenstock({"jit", "clear"}).out, "removed 0 kernels, 0 B, from " + folder_ + "\n");
  const auto json = nlohmann::json::parse(RunPenstock({"jit", "clear", "--json"}).out);
  EXPECT_EQ(json, (nlohmann::json{{"folder", folder_}, {"kernels", 0}, {"bytes", 0}}));
}

TEST_F(PenstockJit, DoesNotMakeAFolder) {
  EXPECT_EQ(RunPenstock({"jit", "list"}).out, "0 kernels, 0 B of at most 256 MiB, in " + folder_ + "\n");
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(PenstockJit, SaysWhyItCannot) {
  const Ran nothing = RunPenstock({"jit"});
  EXPECT_EQ(nothing.code, kFailed);
  Keep("a", 1);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  for (const char* command : {"list", "clear"}) {
    const Ran refused = RunPenstock({"jit", command});
    EXPECT_EQ(refused.code, kFailed);
    EXPECT_THAT(refused.err, HasSubstr("others may write to " + folder_));
    const EnvironmentScope off("PENSTOCK_JIT_CACHE", "off");
    EXPECT_THAT(RunPenstock({"jit", command}).err, HasSubstr("no kernels are kept"));
  }
}

}  // namespace
}  // namespace penstock::cli::jit_command_test
