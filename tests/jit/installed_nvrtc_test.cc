// The note by which a process knows the version of NVRTC without loading it: when it holds, and when not.
#include "src/jit/installed_nvrtc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"

namespace penstock::jit::installed_nvrtc_test {
namespace {

class InstalledNvrtc : public testing::Test {
 protected:
  InstalledNvrtc() { std::ofstream(library_) << "a library"; }

  std::string Build() const { return BuildOfNvrtc(library_, "13.7"); }

  const TemporaryFolder root_;
  const std::string library_ = root_.path() + "/libnvrtc.so.13";
};

TEST_F(InstalledNvrtc, IsKnownByItsNote) {
  const std::string note = NoteOnNvrtc(library_, Build());
  EXPECT_EQ(BuildInNote(note), Build());
  EXPECT_EQ(BuildInNote(note.substr(1)), std::nullopt);
  EXPECT_EQ(BuildInNote(note + "\n"), std::nullopt);
  EXPECT_EQ(BuildInNote(""), std::nullopt);
  EXPECT_EQ(BuildInNote("\n\n"), std::nullopt);
}

TEST_F(InstalledNvrtc, IsAnotherOneIfItsFileIs) {
  const std::string note = NoteOnNvrtc(library_, Build());
  std::filesystem::last_write_time(library_, std::filesystem::last_write_time(library_) + std::chrono::seconds(1));
  EXPECT_EQ(BuildInNote(note), std::nullopt);
  const std::string later = NoteOnNvrtc(library_, Build());
  EXPECT_EQ(BuildInNote(later), Build());
  std::filesystem::remove(library_);
  EXPECT_EQ(BuildInNote(later), std::nullopt);
  EXPECT_EQ(NoteOnNvrtc(library_, Build()), "");
}

TEST_F(InstalledNvrtc, IsAnotherBuildIfAPatchKeepsTheVersion) {
  const std::string before = Build();
  EXPECT_TRUE(before.starts_with("13.7 ("));
  std::filesystem::last_write_time(library_, std::filesystem::last_write_time(library_) + std::chrono::seconds(1));
  const std::string later = Build();
  EXPECT_NE(before, later);
  std::filesystem::resize_file(library_, 100);
  EXPECT_NE(later, Build());
  EXPECT_EQ(NoteOnNvrtc(library_, before), "") << "the file is not the one that a process has loaded";
}

TEST_F(InstalledNvrtc, MayBeAnotherOneInAnotherEnvironment) {
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    const std::string note = NoteOnNvrtc(library_, Build());
    const EnvironmentScope other(name, "/somewhere");
    EXPECT_EQ(BuildInNote(note), std::nullopt) << name;
    EXPECT_EQ(BuildInNote(NoteOnNvrtc(library_, Build())), Build()) << name;
  }
}

}  // namespace
}  // namespace penstock::jit::installed_nvrtc_test
