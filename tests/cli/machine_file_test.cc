// Machine files: what is written comes back, and what is none is refused with its place and the reason.
#include "src/cli/machine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::cli::machine_file_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Each figure is another number.
analysis::Machine TwoDevices() {
  analysis::Machine machine;
  machine.host = "Tester 9000";
  machine.cores = 16;
  machine.host_copy = 90.25;
  machine.host_fp32 = 1500;
  machine.devices = {{"cuda:0", "GPU \"a\" \n", true, 1.5, 2, 3, 4, 5, 6, 7, 60e3, 8, 9, 10, 11, 12},
                     {"host:0", "2 CPU threads", false, 21, 22, 23, 24, 25, 26, 27, 32, 28, 29, 30, 31, 0}};
  machine.peers = {{0, 1e-3}, {395.123456789, 0}};
  return machine;
}

class MachineFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "penstock_machine_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ / "machine.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Make(const std::string& text) const { std::ofstream(path_) << text; }
  std::string Content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The file of TwoDevices with one value replaced.
  void MakeWith(const std::string& pointer, const nlohmann::json& value) const {
    nlohmann::json json = nlohmann::json::parse(MachineText(TwoDevices(), "2026-11-28"));
    json[nlohmann::json::json_pointer(pointer)] = value;
    Make(json.dump());
  }
  // Why the file is refused: always with its name.
  std::string Refusal() const {
    const absl::Status status = ReadMachine(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(Text(status), HasSubstr("machine file '" + path_ + "': "));
    return Text(status);
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(MachineFile, ReadsBackWhatWasWritten) {
  ASSERT_OK(WriteMachine(path_, TwoDevices(), "2026-11-28"));
  const auto read = ReadMachine(path_);
  ASSERT_OK(read.status());
  EXPECT_EQ(*read, TwoDevices());
}

TEST_F(MachineFile, NamesFormatVersionDateAndMembersAsDocumented) {
  const nlohmann::json json = nlohmann::json::parse(MachineText(TwoDevices(), "2026-11-28"));
  EXPECT_EQ(json.at("format"), "penstock machine");
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("date"), "2026-11-28");
  EXPECT_EQ(json.at("host"), "Tester 9000");
  EXPECT_EQ(json.at("cores"), 16);
  EXPECT_EQ(json.at("host_copy"), 90.25);
  EXPECT_EQ(json.at("host_fp32"), 1500);
  EXPECT_EQ(json.at("peers"), nlohmann::json::parse("[[0, 1e-3], [395.123456789, 0]]"));
  EXPECT_EQ(json.at("devices").at(1), nlohmann::json::parse(R"({
    "name": "host:0", "description": "2 CPU threads", "is_cuda": false, "upload": 21.0, "download": 22.0,
    "upload_both_ways": 23.0, "download_both_ways": 24.0, "staged_upload": 25.0, "staged_download": 26.0,
    "memory": 27.0, "fp32": 32.0, "copy_us": 28.0, "stream_node_us": 29.0, "graph_node_us": 30.0, "launch_us": 31.0,
    "host_node_us": 0.0})"));
}

TEST_F(MachineFile, MembersThatNobodyKnowsAreIgnoredAndMissingFiguresUnknown) {
  Make(R"({"format": "penstock machine", "version": 1, "host": "h", "later": {"a": [1]},
           "devices": [{"name": "cuda:0", "description": "d", "is_cuda": true, "upload": 3, "later": null}]})");
  const auto read = ReadMachine(path_);
  ASSERT_OK(read.status());
  ASSERT_EQ(read->devices.size(), 1u);
  EXPECT_EQ(read->devices[0].upload, 3);
  EXPECT_EQ(read->devices[0].download, 0);
  EXPECT_EQ(read->devices[0].fp32, 0);
  EXPECT_EQ(read->cores, 0);
  EXPECT_EQ(read->peers, std::vector<std::vector<double>>{{0}});
}

TEST_F(MachineFile, RefusesFilesThatAreIncompleteOrForeign) {
  const std::string whole = MachineText(TwoDevices(), "2026-11-28");
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 2}) {
    Make(whole.substr(0, length));
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("not JSON from byte"), HasSubstr("penstock calibrate"))) << length;
  }
  for (const char* const foreign :
       {"3", "[]", "{}", "null", R"({"format": "penstock profile", "version": 1})", R"({"format": 1, "version": 1})"}) {
    Make(foreign);
    EXPECT_THAT(Refusal(), HasSubstr("not a machine file")) << foreign;
  }
}

TEST_F(MachineFile, RefusesVersionsThatItDoesNotKnow) {
  for (const nlohmann::json& version : {nlohmann::json(0), {-1}, {1.5}, {"1"}, {nullptr}}) {
    MakeWith("/version", version);
    EXPECT_THAT(Refusal(), HasSubstr("version is not a number of at least 1")) << version;
  }
  for (const nlohmann::json& version : {nlohmann::json(2), nlohmann::json(uint64_t{1} << 63)}) {
    MakeWith("/version", version);
    EXPECT_THAT(Refusal(), HasSubstr("its version is newer than 1")) << version;
  }
}

TEST_F(MachineFile, RefusesHostileValuesWithTheirPlace) {
  const std::vector<std::pair<std::string, std::pair<nlohmann::json, std::string>>> cases = {
      {"/host_copy", {-1, "host_copy: is -1, less than 0"}},
      {"/host", {7, "host: is not a string"}},
      {"/cores", {1.5, "cores: is not a number of cores"}},
      {"/cores", {1e300, "cores: is 1e+300, beyond 10^18"}},
      {"/cores", {"2", "cores: is not a number"}},
      {"/devices", {"none", "devices: is not an array"}},
      {"/devices/1", {5, "devices[1]: is not an object"}},
      {"/devices/1/name", {nullptr, "devices[1].name: is not a string"}},
      {"/devices/0/is_cuda", {1, "devices[0].is_cuda: is neither true nor false"}},
      {"/devices/0/upload", {-1e-9, "devices[0].upload: is -1e-09, less than 0"}},
      {"/devices/0/upload", {1e-7, "devices[0].upload: is no figure of a machine"}},
      {"/devices/0/fp32", {1e13, "devices[0].fp32: is no figure of a machine"}},
      {"/devices/1/host_node_us", {"fast", "devices[1].host_node_us: is not a number"}},
      {"/devices/1/copy_us", {nullptr, "devices[1].copy_us: is not a number"}},
      {"/peers", {nlohmann::json::array(), "peers: is not a list of 2, the number of devices"}},
      {"/peers/1", {{1, 2, 3}, "peers[1]: is not a list of 2, the number of devices"}},
      {"/peers/0/1", {-3, "peers[0][1]: is -3, less than 0"}},
  };
  for (const auto& [pointer, wrong] : cases) {
    MakeWith(pointer, wrong.first);
    EXPECT_THAT(Refusal(), HasSubstr(": " + wrong.second + ";")) << pointer;
  }
}

TEST_F(MachineFile, RefusesNumbersNestingAndSizesBeyondAllMeasure) {
  Make(R"({"format": "penstock machine", "version": 1, "host_copy": 1e999})");
  EXPECT_THAT(Refusal(), HasSubstr("number that is too large"));
  Make(std::string(50'000, '['));
  EXPECT_THAT(Refusal(), HasSubstr("not JSON from byte"));
  Make(std::string(50'000, '[') + std::string(50'000, ']'));
  EXPECT_THAT(Refusal(), HasSubstr("not a machine file"));
  Make(std::string((size_t{1} << 20) + 1, ' '));
  EXPECT_EQ(ReadMachine(path_).status().code(), absl::StatusCode::kResourceExhausted);
  Make("\"\x80\"");
  EXPECT_THAT(Refusal(), HasSubstr("not JSON from byte"));
}

TEST_F(MachineFile, SaysThatThereIsNoneOrThatItCannotBeRead) {
  const absl::Status none = ReadMachine(path_).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(none), AllOf(HasSubstr(path_), HasSubstr("penstock calibrate")));
  const absl::Status folder = ReadMachine(folder_).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(folder), HasSubstr("Is a directory"));
}

TEST_F(MachineFile, AFileSurvivesAnotherThatCannotBeWritten) {
  ASSERT_OK(WriteMachine(path_, TwoDevices(), "2026-11-28"));
  const std::string before = Content();
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = WriteMachine(path_, TwoDevices(), "2026-11-29");
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Text(status), HasSubstr(path_));
  EXPECT_EQ(Content(), before);
}

TEST_F(MachineFile, IsInTheConfigurationDirectoryByDefault) {
  const EnvironmentScope home("HOME", "/home/somebody");
  {
    const EnvironmentScope config("XDG_CONFIG_HOME", "/config");
    EXPECT_EQ(*MachinePath(), "/config/penstock/machine.json");
  }
  for (const char* const unusable : {"", "relative"}) {
    const EnvironmentScope config("XDG_CONFIG_HOME", unusable);
    EXPECT_EQ(*MachinePath(), "/home/somebody/.config/penstock/machine.json");
    const EnvironmentScope no_home("HOME", "");
    EXPECT_EQ(MachinePath().status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace penstock::cli::machine_file_test
