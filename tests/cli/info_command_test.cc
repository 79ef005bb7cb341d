// penstock info: the devices, what works on them, and why host devices take their place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/cli/host_facts.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/environment.h"

namespace penstock::cli::info_command_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(InfoCommand, SaysWhatWorksOnEachDevice) {
  const EnvironmentScope devices("PENSTOCK_DEVICES", "host:2");
  const Ran text = RunPenstock({"info"});
  EXPECT_EQ(text.code, kDone);
  ExpectPlain(text.out);
  EXPECT_THAT(text.out, AllOf(HasSubstr("host:0"), HasSubstr("host:1"), HasSubstr("core"), HasSubstr("pinned"),
                              Not(HasSubstr("take the place"))));  // they were asked for
  const json read = json::parse(RunPenstock({"info", "--json"}).out);
  ASSERT_EQ(read["devices"].size(), 2u);
  for (const json& device : read["devices"]) {
    EXPECT_EQ(device["is_cuda"], false);
    EXPECT_EQ(device["graphs"], true);
    EXPECT_EQ(device["hostcalls"], true);
    EXPECT_EQ(device["error"], "");
  }
  EXPECT_GT(read["pinned_budget_bytes"], 0);
}

TEST(InfoCommand, SaysWhyHostDevicesTakeThePlaceOfCudaDevices) {
  const EnvironmentScope devices("PENSTOCK_DEVICES", "");
  const json read = json::parse(RunPenstock({"info", "--json"}).out);
  ASSERT_FALSE(read["devices"].empty());
  const std::string why = read["why_host_devices"];
  EXPECT_EQ(read["devices"][0]["is_cuda"] == true, why.empty());
  const std::string text = RunPenstock({"info"}).out;
  EXPECT_EQ(text.find("take the place of CUDA devices:") == std::string::npos, why.empty()) << text;
}

TEST(InfoCommand, SaysWhatItKnowsWhereNoRuntimeCanBeMade) {
  const EnvironmentScope devices("PENSTOCK_DEVICES", "toaster");
  const Ran ran = RunPenstock({"info"});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.out, HasSubstr("core"));
  EXPECT_THAT(ran.err, HasSubstr("toaster"));
  EXPECT_THAT(json::parse(RunPenstock({"info", "--json"}).out)["error"].get<std::string>(), HasSubstr("toaster"));
}

TEST(InfoCommand, SaysWhatDoesNotWorkOnADevice) {
  const EnvironmentScope devices("PENSTOCK_DEVICES", "host");
  {
    const EnvironmentScope mode("PENSTOCK_MODE", "stream");
    const json device = json::parse(RunPenstock({"info", "--json"}).out)["devices"][0];
    EXPECT_EQ(device["graphs"], false);
    EXPECT_EQ(device["hostcalls"], true);
  }
  const EnvironmentScope pinned("PENSTOCK_PINNED_BYTES", "1");
  const Ran ran = RunPenstock({"info"});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.out, HasSubstr("host:0: a graph does not run: "));
  EXPECT_THAT(ran.err, HasSubstr("the limit of 1 bytes"));
}

// A variable that is meant for the user's program.
TEST(InfoCommand, WritesNoProfileOfItself) {
  const TemporaryFolder folder;
  const EnvironmentScope devices("PENSTOCK_DEVICES", "host"), profile("PENSTOCK_PROFILE", folder.Path("app.profile"));
  EXPECT_EQ(RunPenstock({"info"}).code, kDone);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("app.profile")));
}

TEST(HostFacts, ReadWhatTheSystemTells) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder.Path(path)).parent_path());
    std::ofstream(folder.Path(path)) << text;
  };
  EXPECT_EQ(LookAtHost(folder.Path("")).nvidia_driver, "");
  EXPECT_EQ(LookAtHost(folder.Path("")).numa_nodes, 0);
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU\n");
  write("sys/devices/system/node/online", "0-2,5\n");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x@y)  Tue\n");
  const HostFacts facts = LookAtHost(folder.Path(""));
  EXPECT_EQ(facts.processor, "Fast CPU");
  EXPECT_EQ(facts.numa_nodes, 4);
  EXPECT_EQ(facts.nvidia_driver, "580.95.05");
}

}  // namespace
}  // namespace penstock::cli::info_command_test
