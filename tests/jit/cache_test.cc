// Compiled kernels on disk: what is kept and found, and what damage, strangers, full disks and races do to it.
#include "src/jit/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/status.h"
#include "tests/support/temporary_folder.h"

namespace penstock::jit::cache_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Digest KeyNumber(int number) { return Sha256Of(std::to_string(number)); }
KernelImage ImageNumber(int number, size_t bytes = 1000) {
  return {"_Z" + std::to_string(number), std::string(bytes, static_cast<char>('a' + number % 26))};
}
Cache::Entry EntryNumber(int number) { return {.kernel = "k" + std::to_string(number), .architecture = "sm_90"}; }

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path().string());
  return paths;
}
std::string TextOfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void Overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
// As if the file had been used so many seconds ago.
void MakeOlder(const std::string& path, int seconds) {
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::seconds(seconds));
}
std::string FileOf(const std::string& folder, int number) {
  return folder + "/" + HexOf(KeyNumber(number)) + ".kernel";
}

class JitCache : public testing::Test {
 protected:
  Cache Open(int64_t most_bytes = Cache::kMostBytes) const { return *Cache::Open(folder(), most_bytes); }
  void Keep(int number, size_t bytes = 1000) const {
    Open().Keep(KeyNumber(number), EntryNumber(number), ImageNumber(number, bytes));
  }
  std::string folder() const { return root_.path() + "/a/jit"; }

  const TemporaryFolder root_;
};

TEST_F(JitCache, FindsWhatItKeeps) {
  Keep(1);
  Keep(2, 0);
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(1));
  EXPECT_EQ(Open().Find(KeyNumber(2)), ImageNumber(2, 0));
  EXPECT_EQ(Open().Find(KeyNumber(3)), std::nullopt);
  Open().Keep(KeyNumber(1), EntryNumber(1), ImageNumber(7));
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(7));
  EXPECT_EQ(FilesOf(folder()).size(), 2u);
}

TEST_F(JitCache, MakesFoldersThatNobodyElseMayUse) {
  Keep(1);
  struct stat found{};
  ASSERT_EQ(stat(folder().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(FileOf(folder(), 1).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(JitCache, TakesNoFileThatIsDamagedAndReplacesIt) {
  Keep(1);
  const std::string path = FileOf(folder(), 1), good = TextOfFile(path);
  for (size_t at = 0; at < good.size(); at += 1 + at / 8) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    Overwrite(path, bad);
    EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt) << "byte " << at;
    Overwrite(path, good.substr(0, at));
    EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt) << at << " bytes";
    EXPECT_THAT(Open().List(), IsEmpty());
  }
  Overwrite(path, good + "x");
  EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt);
  Keep(1);
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(1));
}

TEST_F(JitCache, TakesNoFileOfAnotherKey) {
  Keep(1);
  fs::rename(FileOf(folder(), 1), FileOf(folder(), 2));
  EXPECT_EQ(Open().Find(KeyNumber(2)), std::nullopt);
}

TEST_F(JitCache, TakesNoFileThatOthersMayWriteAndNoLink) {
  Keep(1);
  const std::string path = FileOf(folder(), 1);
  for (const mode_t mode : {0620, 0602}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt) << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(1));
  fs::rename(path, root_.path() + "/elsewhere");
  fs::create_symlink(root_.path() + "/elsewhere", path);
  EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt);
}

TEST_F(JitCache, IsRefusedInAFolderThatOthersMayWriteTo) {
  Keep(1);
  for (const mode_t mode : {0720, 0702, 01777}) {
    ASSERT_EQ(chmod(folder().c_str(), mode), 0);
    const absl::Status refused = Cache::Open(folder()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Text(refused), HasSubstr("others may write to " + folder()));
  }
  ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
  EXPECT_OK(Cache::Open(folder()).status());
}

TEST_F(JitCache, IsRefusedInAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  Keep(1);
  ASSERT_EQ(chown(folder().c_str(), 65534, 65534), 0);
  const absl::Status refused = Cache::Open(folder()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(refused), HasSubstr(folder() + " belongs to user 65534"));
  ASSERT_EQ(chown(folder().c_str(), 0, 0), 0);
  ASSERT_EQ(chown(FileOf(folder(), 1).c_str(), 65534, 65534), 0);
  EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt);
}

TEST_F(JitCache, MakesNoFolderBelowThatOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(chown(root_.path().c_str(), 65534, 65534), 0);
  const absl::Status refused = Cache::Open(folder()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(refused), HasSubstr(root_.path() + " belongs to user 65534"));
  EXPECT_THAT(FilesOf(root_.path()), IsEmpty());
  ASSERT_EQ(chown(root_.path().c_str(), 0, 0), 0);
  EXPECT_OK(Cache::Open(folder()).status());
}

TEST_F(JitCache, DoesNotReadAFileThatIsLargerThanAnyKernel) {
  Keep(1);
  const std::string path = FileOf(folder(), 1);
  fs::resize_file(path, uintmax_t{65} << 20);  // of which next to nothing is on the disk
  MakeOlder(path, 60);
  const auto used = fs::last_write_time(path);
  EXPECT_EQ(Open().Find(KeyNumber(1)), std::nullopt);
  EXPECT_EQ(fs::last_write_time(path), used) << "it has been read";
}

TEST_F(JitCache, KeepsBesideTemporaryFilesOfAKilledProcessOfTheSameNumber) {
  (void)Open();
  for (int serial = 0; serial < 1000; ++serial) {
    Overwrite(FileOf(folder(), 1) + "." + std::to_string(getpid()) + "." + std::to_string(serial) + ".tmp", "");
  }
  Keep(1);
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(1));
}

TEST_F(JitCache, IsRefusedWhereNoFolderCanBeMade) {
  Overwrite(root_.path() + "/a", "a file");
  EXPECT_FALSE(Cache::Open(folder()).ok());
  EXPECT_EQ(Cache::Open(root_.path() + "/b", 1, /*make=*/false).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(root_.path() + "/b"));
}

// In a process of its own, whose rights or limits it changes; returns what it exits with.
template <class F>
int ExitCodeOf(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(JitCache, DoesWithoutAFolderThatCannotBeWrittenTo) {
  Keep(1);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder().c_str(), 65534, 65534), 0);
    ASSERT_EQ(chown(FileOf(folder(), 1).c_str(), 65534, 65534), 0);
  }
  ASSERT_EQ(chmod(root_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((root_.path() + "/a").c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder().c_str(), 0500), 0);
  EXPECT_EQ(ExitCodeOf([&] {
              if (geteuid() == 0 && seteuid(65534) != 0) return 1;  // root may write anywhere
              Keep(2);
              if (Open().Find(KeyNumber(2))) return 2;
              return Open().Find(KeyNumber(1)) == ImageNumber(1) ? 0 : 3;
            }),
            0);
}

TEST_F(JitCache, DoesWithoutADiskThatIsFull) {
  Keep(1);
  EXPECT_EQ(ExitCodeOf([&] {
              const rlimit limit{500, 500};  // beyond it writing fails, with a signal that would end the process
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              Keep(2);
              return Open().Find(KeyNumber(2)) ? 2 : 0;
            }),
            0);
  EXPECT_EQ(Open().Find(KeyNumber(1)), ImageNumber(1));
  EXPECT_EQ(FilesOf(folder()).size(), 1u) << "nothing is left of what could not be written";
}

TEST_F(JitCache, LetsProcessesRace) {
  constexpr int kProcesses = 4, kKernels = 8, kRounds = 40;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < kRounds; ++i) {
      const int number = (i + p) % kKernels;
      const auto found = Open().Find(KeyNumber(number));
      if (found && *found != ImageNumber(number, 50'000)) _exit(1);
      if (!found || i % 3 == 0) Keep(number, 50'000);
      if (i % 7 == p) Open().Clear();
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a process found what nobody wrote";
  }
  for (int number = 0; number < kKernels; ++number) Keep(number, 50'000);
  EXPECT_EQ(FilesOf(folder()).size(), static_cast<size_t>(kKernels)) << "no temporary file is left";
}

TEST_F(JitCache, RemovesWhatWasUsedLongestAgo) {
  for (const int number : {1, 2, 3}) Keep(number);
  const auto bytes = static_cast<int64_t>(fs::file_size(FileOf(folder(), 1)));
  MakeOlder(FileOf(folder(), 1), 30);
  MakeOlder(FileOf(folder(), 2), 20);
  MakeOlder(FileOf(folder(), 3), 10);
  EXPECT_TRUE(Open().Find(KeyNumber(1)));  // now it is the one used last
  const Cache small = Open(3 * bytes + bytes / 2);
  small.Keep(KeyNumber(4), EntryNumber(4), ImageNumber(4));
  EXPECT_EQ(FilesOf(folder()).size(), 4u);
  small.Shrink();
  EXPECT_TRUE(small.Find(KeyNumber(1)));
  EXPECT_FALSE(small.Find(KeyNumber(2)));
  EXPECT_TRUE(small.Find(KeyNumber(3)));
  EXPECT_TRUE(small.Find(KeyNumber(4)));
  const Cache tiny = Open(bytes - 1);
  EXPECT_FALSE(tiny.Find(KeyNumber(4))) << "it would not have kept a file of this size";
  tiny.Keep(KeyNumber(5), EntryNumber(5), ImageNumber(5));
  EXPECT_FALSE(small.Find(KeyNumber(5))) << "larger than all may be together";
  EXPECT_EQ(FilesOf(folder()).size(), 3u);
}

TEST_F(JitCache, RemovesTemporaryFilesOfInterruptedProcessesAndNoOtherFiles) {
  Keep(1);
  const std::string old = FileOf(folder(), 9) + ".123.0.tmp", recent = FileOf(folder(), 8) + ".124.0.tmp";
  Overwrite(old, "x");
  MakeOlder(old, 7200);
  Overwrite(recent, "x");
  Overwrite(folder() + "/notes.txt", "mine");
  const Cache::Cleared cleared = Open().Clear();
  EXPECT_EQ(cleared.kernels, 1);
  EXPECT_GT(cleared.bytes, 1000);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
  EXPECT_TRUE(fs::exists(folder() + "/notes.txt"));
  EXPECT_FALSE(fs::exists(FileOf(folder(), 1)));
}

TEST_F(JitCache, ListsWhatWasUsedLastFirst) {
  for (const int number : {1, 2, 3}) Keep(number);
  for (const int number : {1, 2, 3}) MakeOlder(FileOf(folder(), number), 10 * (number % 3 + 1));
  std::vector<std::string> kernels;
  for (const Cache::Entry& entry : Open().List()) {
    kernels.push_back(entry.kernel);
    EXPECT_EQ(entry.architecture, "sm_90");
    EXPECT_GT(entry.bytes, 1000);
    EXPECT_GT(entry.used, 1'600'000'000);
  }
  EXPECT_THAT(kernels, ElementsAre("k3", "k1", "k2"));
}

TEST_F(JitCache, KeepsANoteBesideTheKernels) {
  EXPECT_EQ(Open().ReadNote(), std::nullopt);
  Open().WriteNote("one\n");
  EXPECT_EQ(Open().ReadNote(), "one\n");
  EXPECT_THAT(Open().List(), IsEmpty());
  ASSERT_EQ(FilesOf(folder()).size(), 1u);
  Overwrite(FilesOf(folder())[0], TextOfFile(FilesOf(folder())[0]) + "x");
  EXPECT_EQ(Open().ReadNote(), std::nullopt);
  Open().WriteNote("two");
  EXPECT_EQ(Open().ReadNote(), "two");
  EXPECT_EQ(Open().Clear().kernels, 0);
  EXPECT_EQ(Open().ReadNote(), std::nullopt);
}

TEST_F(JitCache, IsWhereTheEnvironmentSays) {
  const EnvironmentScope home("HOME", "/home/u");
  {
    const EnvironmentScope none("PENSTOCK_JIT_CACHE", ""), xdg("XDG_CACHE_HOME", "");
    EXPECT_EQ(Cache::FolderByEnvironment(), "/home/u/.cache/penstock/jit");
  }
  {
    const EnvironmentScope none("PENSTOCK_JIT_CACHE", ""), xdg("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(Cache::FolderByEnvironment(), "/home/u/.cache/penstock/jit");
  }
  const EnvironmentScope xdg("XDG_CACHE_HOME", "/var/cache/u");
  {
    const EnvironmentScope none("PENSTOCK_JIT_CACHE", "");
    EXPECT_EQ(Cache::FolderByEnvironment(), "/var/cache/u/penstock/jit");
  }
  const EnvironmentScope own("PENSTOCK_JIT_CACHE", "here");
  EXPECT_EQ(Cache::FolderByEnvironment(), "here");
  const EnvironmentScope off("PENSTOCK_JIT_CACHE", "off");
  EXPECT_EQ(Cache::FolderByEnvironment(), std::nullopt);
}

}  // namespace
}  // namespace penstock::jit::cache_test
