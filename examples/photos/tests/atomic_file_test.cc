// Whole or not at all, under its name or not there.
#include "examples/photos/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "examples/photos/tests/pictures.h"

namespace photos::atomic_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void Write(const AtomicFile& file, const std::string& text) {
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file.file()), text.size());
}

std::string Text(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadBytes(path);
  return {bytes.begin(), bytes.end()};
}

TEST(AtomicFileTest, AppearsUnderItsNameAtCommitOnly) {
  TempFolder folder;
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / "a");
  ASSERT_TRUE(file.ok()) << file.status();
  Write(*file, "whole");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Text(folder / "a"), "whole");
  EXPECT_THAT(folder.Names(), ElementsAre("a"));
}

TEST(AtomicFileTest, LeavesNothingWithoutCommit) {
  TempFolder folder;
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / "a");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(folder.Names().size(), 1u);
    AtomicFile moved = *std::move(file);
    EXPECT_EQ(folder.Names().size(), 1u);
  }
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(AtomicFileTest, TwoWritersOfOneNameDoNotMix) {
  TempFolder folder;
  absl::StatusOr<AtomicFile> first = AtomicFile::Create(folder / "a");
  absl::StatusOr<AtomicFile> second = AtomicFile::Create(folder / "a");
  ASSERT_TRUE(first.ok() && second.ok());
  Write(*first, "first");
  Write(*second, "second");
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(Text(folder / "a"), "second");
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(Text(folder / "a"), "first");
  EXPECT_THAT(folder.Names(), ElementsAre("a"));
}

TEST(AtomicFileTest, HiddenNameDoesNotGrowWithTheTargets) {
  TempFolder folder;
  const std::string longest(255, 'n');
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / longest);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Commit().ok());
  EXPECT_THAT(folder.Names(), ElementsAre(longest));
}

TEST(AtomicFileTest, NamesTheTargetWhereTheFolderIsMissing) {
  TempFolder folder;
  const absl::Status status = AtomicFile::Create(folder / "no/a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/a'"));
}

TEST(AtomicFileTest, RefusesToReplaceAFolder) {
  TempFolder folder;
  ASSERT_EQ(mkdir((folder / "a").c_str(), 0700), 0);
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / "a");
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file->Commit().ok());
  }
  EXPECT_THAT(folder.Names(), ElementsAre("a"));
}

// Ends the process: 0 where Commit reports that `size` bytes do not fit into 4096.
[[noreturn]] void WriteWhereFilesCannotGrow(const std::string& path, size_t size) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {4096, 4096};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
  bool refused = false;
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(path);
    if (!file.ok()) std::_Exit(3);
    std::setvbuf(file->file(), nullptr, size > 8192 ? _IONBF : _IOFBF, 8192);
    const std::string text(size, 'x');
    std::fwrite(text.data(), 1, text.size(), file->file());
    const absl::Status status = file->Commit();
    refused = !status.ok();
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
  }
  std::_Exit(refused ? 0 : 4);
}

TEST(AtomicFileTest, CommitReportsWhatWritingDidNot) {
  for (size_t size : {5000, 9000}) {  // fails while closing; failed in fwrite, unseen
    TempFolder folder;
    EXPECT_EXIT(WriteWhereFilesCannotGrow(folder / "a", size), testing::ExitedWithCode(0), "cannot write .*/a'");
    EXPECT_THAT(folder.Names(), IsEmpty());
  }
}

}  // namespace
}  // namespace photos::atomic_file_test
