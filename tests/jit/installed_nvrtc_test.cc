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

  const TemporaryFolder root_;
  const std::string library_ = root_.path() + "/libnvrtc.so.13";
};

TEST_F(InstalledNvrtc, IsKnownByItsNote) {
  const std::string note = NoteOnNvrtc(library_, "13.7");
  EXPECT_EQ(VersionInNote(note), "13.7");
  EXPECT_EQ(VersionInNote(note.substr(1)), std::nullopt);
  EXPECT_EQ(VersionInNote(note + "\n"), std::nullopt);
  EXPECT_EQ(VersionInNote(""), std::nullopt);
  EXPECT_EQ(VersionInNote("\n\n"), std::nullopt);
}

TEST_F(InstalledNvrtc, IsAnotherOneIfItsFileIs) {
  const std::string note = NoteOnNvrtc(library_, "13.7");
  std::filesystem::last_write_time(library_, std::filesystem::last_write_time(library_) + std::chrono::seconds(1));
  EXPECT_EQ(VersionInNote(note), std::nullopt);
  const std::string later = NoteOnNvrtc(library_, "13.7");
  EXPECT_EQ(VersionInNote(later), "13.7");
  std::filesystem::remove(library_);
  EXPECT_EQ(VersionInNote(later), std::nullopt);
  EXPECT_EQ(NoteOnNvrtc(library_, "13.7"), "");
}

TEST_F(InstalledNvrtc, MayBeAnotherOneInAnotherEnvironment) {
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    const std::string note = NoteOnNvrtc(library_, "13.7");
    const EnvironmentScope other(name, "/somewhere");
    EXPECT_EQ(VersionInNote(note), std::nullopt) << name;
    EXPECT_EQ(VersionInNote(NoteOnNvrtc(library_, "13.7")), "13.7") << name;
  }
}

}  // namespace
}  // namespace penstock::jit::installed_nvrtc_test
