// WriteFile: what becomes of plain files, links, devices, pipes and of what cannot be written.
#include "src/base/file.h"
#include "tests/support/status.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <vector>

namespace penstock::base::file_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class WriteFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "penstock_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
  }
  void TearDown() override {
    chmod(folder_.c_str(), 0700);
    std::filesystem::remove_all(folder_);
  }

  std::string At(const std::string& name) const { return folder_ / name; }
  void Make(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::ofstream(At(name)) << text;
    ASSERT_EQ(chmod(At(name).c_str(), mode), 0);
  }
  absl::Status Write(const std::string& name, std::string_view text) const {
    return WriteFile("trace file", At(name), text);
  }
  std::string Content(const std::string& name) const {
    std::ifstream in(At(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  struct stat Look(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(lstat(At(name).c_str(), &found), 0) << name;
    return found;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  std::filesystem::path folder_;
};

// In a child, as somebody who is not root where this process is: root may write everything. Whether `f` returned true.
bool AsNobody(const std::function<bool()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    const bool nobody = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
    _exit(nobody && f() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(WriteFileTest, ANewFileHasTheModeOfAnyOther) {
  const mode_t before = umask(027);
  const absl::Status status = Write("new", "text");
  umask(before);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Look("new").st_mode, S_IFREG | 0640u);
  EXPECT_EQ(Content("new"), "text");
}

TEST_F(WriteFileTest, AnOldFileIsReplacedWholeAndKeepsItsModeAndOwner) {
  Make("old", "something longer", 0600);
  (void)!chown(At("old").c_str(), 65534, 65533);  // as root
  const struct stat before = Look("old");
  std::ifstream open_before(At("old"));
  ASSERT_TRUE(Write("old", "text").ok());
  const struct stat after = Look("old");
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(Content("old"), "text");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(open_before), {}), "something longer");  // never half of it
  EXPECT_THAT(Names(), ElementsAre("old"));
}

TEST_F(WriteFileTest, LinksStayAndLeadToTheText) {
  Make("real", "old", 0600);
  std::filesystem::create_directory(At("folder"));
  ASSERT_EQ(symlink("real", At("one").c_str()), 0);
  ASSERT_EQ(symlink("../one", At("folder/two").c_str()), 0);
  ASSERT_EQ(symlink(At("folder/two").c_str(), At("three").c_str()), 0);
  ASSERT_TRUE(Write("three", "text").ok());
  EXPECT_EQ(Content("real"), "text");
  EXPECT_EQ(Look("real").st_mode, S_IFREG | 0600u);
  for (const char* const link : {"one", "folder/two", "three"}) EXPECT_TRUE(S_ISLNK(Look(link).st_mode)) << link;
  EXPECT_THAT(Names(), UnorderedElementsAre("real", "folder", "one", "three"));
}

TEST_F(WriteFileTest, ALinkToNothingYetLeadsToANewFile) {
  ASSERT_EQ(symlink("not_yet", At("link").c_str()), 0);
  ASSERT_TRUE(Write("link", "text").ok());
  EXPECT_TRUE(S_ISLNK(Look("link").st_mode));
  EXPECT_TRUE(S_ISREG(Look("not_yet").st_mode));
  EXPECT_EQ(Content("not_yet"), "text");
}

TEST_F(WriteFileTest, ALinkToItselfIsAnErrorThatSaysSo) {
  ASSERT_EQ(symlink("loop", At("loop").c_str()), 0);
  EXPECT_THAT(Text(Write("loop", "text")),
              AllOf(HasSubstr(At("loop")), HasSubstr("Too many levels of symbolic links")));
  EXPECT_TRUE(S_ISLNK(Look("loop").st_mode));
}

TEST_F(WriteFileTest, AllNamesOfAFileHaveTheText) {
  Make("one", "something longer");
  ASSERT_EQ(link(At("one").c_str(), At("two").c_str()), 0);
  ASSERT_TRUE(Write("one", "text").ok());
  EXPECT_EQ(Content("two"), "text");
  EXPECT_EQ(Look("one").st_ino, Look("two").st_ino);
}

TEST_F(WriteFileTest, APipeIsWrittenToAndStaysOne) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  std::future<std::string> read = std::async(std::launch::async, [this] { return Content("pipe"); });
  ASSERT_TRUE(Write("pipe", "text").ok());
  EXPECT_EQ(read.get(), "text");
  EXPECT_EQ(Look("pipe").st_mode, S_IFIFO | 0600u);
}

// As nobody: a mistake here would replace the machine's own devices.
TEST_F(WriteFileTest, ADeviceIsWrittenToAndItsRefusalIsAnError) {
  EXPECT_TRUE(AsNobody([] { return WriteFile("trace file", "/dev/null", "text").ok(); }));
  EXPECT_TRUE(AsNobody([] {
    const absl::Status full = WriteFile("trace file", "/dev/full", "text");
    return full.code() == absl::StatusCode::kResourceExhausted &&
           Text(full).find("trace file '/dev/full': cannot write it: No space left on device") == 0;
  }));
}

TEST_F(WriteFileTest, ADeviceStaysOne) {
  if (mknod(At("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) GTEST_SKIP() << "no device can be made here";
  (void)Write("null", "text");  // the folder may be mounted without devices
  EXPECT_EQ(Look("null").st_mode, S_IFCHR | 0600u);
  EXPECT_THAT(Names(), ElementsAre("null"));
}

// A reader that has gone would end the process by a signal.
TEST_F(WriteFileTest, ADescriptorsNameIsWrittenThroughItAlsoWhereNobodyReads) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const std::string name = "/dev/fd/" + std::to_string(ends[1]);
  ASSERT_EQ(symlink(name.c_str(), At("link").c_str()), 0);
  ASSERT_TRUE(Write("link", "text").ok());
  std::array<char, 8> got{};
  EXPECT_EQ(read(ends[0], got.data(), got.size()), 4);
  close(ends[0]);
  EXPECT_THAT(Text(Write("link", "text")), HasSubstr("Broken pipe"));
  close(ends[1]);
}

// What stands in a redirected output already is not lost.
TEST_F(WriteFileTest, ADescriptorOfAPlainFileGoesOnWhereItIs) {
  Make("output", "");
  const int fd = open(At("output").c_str(), O_WRONLY);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  ASSERT_TRUE(WriteFile("trace file", "/proc/self/fd/" + std::to_string(fd), "text").ok());
  ASSERT_EQ(write(fd, " after", 6), 6);
  close(fd);
  EXPECT_EQ(Content("output"), "before text after");
}

TEST_F(WriteFileTest, WhereNoFileMayBeMadeTheOldOneIsWritten) {
  Make("old", "something longer", 0666);
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  EXPECT_TRUE(AsNobody([this] { return Write("old", "text").ok(); }));
  EXPECT_EQ(Content("old"), "text");
  EXPECT_EQ(Look("old").st_mode, S_IFREG | 0666u);
  EXPECT_TRUE(AsNobody([this] {
    const absl::Status made = Write("new", "text");
    return made.code() == absl::StatusCode::kPermissionDenied &&
           Text(made).find("Permission denied") != std::string::npos;
  }));
}

TEST_F(WriteFileTest, AFileThatMayNotBeWrittenIsLeftAsItIs) {
  Make("old", "old", 0444);
  (void)!chown(At("old").c_str(), 65534, 65534);  // as root: who owns it could put another in its place
  EXPECT_TRUE(AsNobody([this] {
    const absl::Status refused = Write("old", "text");
    return refused.code() == absl::StatusCode::kPermissionDenied;
  }));
  EXPECT_EQ(Content("old"), "old");
  EXPECT_THAT(Names(), ElementsAre("old"));
}

TEST_F(WriteFileTest, TheFileOfAnotherKeepsItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Make("old", "old", 0666);
  EXPECT_TRUE(AsNobody([this] { return Write("old", "text").ok(); }));
  EXPECT_EQ(Look("old").st_uid, 0u);
  EXPECT_EQ(Content("old"), "text");
  EXPECT_THAT(Names(), ElementsAre("old"));
}

TEST_F(WriteFileTest, WhatCannotBeAFileIsAnErrorWithThePathAndTheReason) {
  std::filesystem::create_directory(At("folder"));
  EXPECT_THAT(Text(Write("folder", "text")), AllOf(HasSubstr("'" + At("folder") + "'"), HasSubstr("Is a directory")));
  EXPECT_THAT(Text(Write("none/file", "text")), AllOf(HasSubstr(At("none/file")), HasSubstr("No such file")));
  EXPECT_THAT(Text(Write(std::string(300, 'x'), "text")), HasSubstr("File name too long"));
  EXPECT_THAT(Text(WriteFile("trace file", "", "text")), HasSubstr("No such file"));
  EXPECT_THAT(Text(Write(std::string("a\0b", 3), "text")), HasSubstr("a null character"));
  EXPECT_TRUE(Write(std::string(255, 'x'), "text").ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("folder", std::string(255, 'x')));
}

// As on a disk that is full half-way. The signal of that limit would end the process.
TEST_F(WriteFileTest, WhatDoesNotFitLeavesTheOldFile) {
  Make("old", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Write("old", std::string(10000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(Text(status), HasSubstr("File too large"));
  EXPECT_EQ(Content("old"), "old");
  EXPECT_THAT(Names(), ElementsAre("old"));
}

}  // namespace
}  // namespace penstock::base::file_test
