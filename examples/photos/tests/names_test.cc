// Which files count as photographs, in which order, and what their edge pictures are called.
#include "examples/photos/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "examples/photos/tests/pictures.h"

namespace photos::names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NamesTest, NamesThatDifferByExtensionOnlyDoNotMeet) {
  EXPECT_EQ(EdgesName("a.png"), "a.png.edges.png");
  EXPECT_EQ(EdgesName("a.jpg"), "a.jpg.edges.png");
}

TEST(NamesTest, DifferentNamesStayDifferent) {
  const std::vector<std::string> names = {"a",      "a.png",     "a.PNG",           "a.jpg",
                                          "a.jpeg", "a.png.png", "a.png.edges.png", "a.edges.png"};
  std::set<std::string> outputs;
  for (const std::string& name : names) outputs.insert(EdgesName(name));
  EXPECT_EQ(outputs.size(), names.size());
}

TEST(NamesTest, ListsFilesByteByByteInOrder) {
  TempFolder folder;
  for (const char* name : {"b.png", "a.png", "B.jpg", "a.jpg", "10.png", "9.png", "notes.txt"}) {
    WriteText(folder / name, "x");
  }
  absl::StatusOr<std::vector<std::string>> names = ListPhotos(folder.path());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre("10.png", "9.png", "B.jpg", "a.jpg", "a.png", "b.png", "notes.txt"));
}

TEST(NamesTest, LeavesOutHiddenFilesFoldersAndNotices) {
  TempFolder folder;
  for (const char* name : {".hidden.png", "LICENSES.md", "LICENSE", "readme.TXT", "Notice.html", "COPYING"}) {
    WriteText(folder / name, "x");
  }
  ASSERT_EQ(mkdir((folder / "folder.png").c_str(), 0700), 0);
  absl::StatusOr<std::vector<std::string>> names = ListPhotos(folder.path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, IsEmpty());
}

TEST(NamesTest, KeepsPhotographsThatAreCalledLikeNotices) {
  TempFolder folder;
  for (const char* name : {"readme.png", "License.JPG", "copying.jpeg", "licensed.md"}) WriteText(folder / name, "x");
  absl::StatusOr<std::vector<std::string>> names = ListPhotos(folder.path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("License.JPG", "copying.jpeg", "licensed.md", "readme.png"));
}

TEST(NamesTest, FollowsLinksAndKeepsBrokenOnesToBeNamed) {
  TempFolder folder, elsewhere;
  WriteText(elsewhere / "x.png", "x");
  ASSERT_EQ(symlink((elsewhere / "x.png").c_str(), (folder / "good.png").c_str()), 0);
  ASSERT_EQ(symlink((elsewhere / "y.png").c_str(), (folder / "broken.png").c_str()), 0);
  ASSERT_EQ(symlink(elsewhere.path().c_str(), (folder / "folder.png").c_str()), 0);
  absl::StatusOr<std::vector<std::string>> names = ListPhotos(folder.path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("broken.png", "good.png"));
}

TEST(NamesTest, MissingInputFolderIsNamed) {
  TempFolder folder;
  const absl::Status status = ListPhotos(folder / "none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none'"));
}

TEST(NamesTest, FileInPlaceOfTheInputFolderIsAnError) {
  TempFolder folder;
  WriteText(folder / "a.png", "x");
  EXPECT_FALSE(ListPhotos(folder / "a.png").ok());
}

TEST(NamesTest, MakesTheOutputFolderAndLeavesItEmpty) {
  TempFolder folder;
  ASSERT_TRUE(PrepareOutputFolder(folder / "a/b/c").ok());
  ASSERT_TRUE(PrepareOutputFolder(folder / "a/b/c").ok());
  ASSERT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a/b/c"));
}

TEST(NamesTest, OutputFolderThatCannotBeMadeIsNamed) {
  TempFolder folder;
  WriteText(folder / "file", "x");
  EXPECT_THAT(std::string(PrepareOutputFolder(folder / "file").message()), HasSubstr("file'"));
  EXPECT_THAT(std::string(PrepareOutputFolder(folder / "file/below").message()), HasSubstr("file/below'"));
}

TEST(NamesTest, OutputFolderWithoutRightToWriteIsAnError) {
  // /proc refuses new files to root too.
  const absl::Status status = PrepareOutputFolder("/proc/self");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("'/proc/self'"));
}

TEST(NamesTest, OneFolderIsTheSameUnderAllItsNames) {
  TempFolder folder;
  ASSERT_EQ(mkdir((folder / "a").c_str(), 0700), 0);
  ASSERT_EQ(symlink((folder / "a").c_str(), (folder / "link").c_str()), 0);
  EXPECT_TRUE(IsSameFolder(folder / "a", folder / "a/../a/"));
  EXPECT_TRUE(IsSameFolder(folder / "a", folder / "link"));
  EXPECT_FALSE(IsSameFolder(folder / "a", folder.path()));
  EXPECT_FALSE(IsSameFolder(folder / "a", folder / "none"));
}

}  // namespace
}  // namespace photos::names_test
