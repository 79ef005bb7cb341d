// Programs that the command runs: what they get, and how their end is told.
#include "src/cli/run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::cli::run_program_test {
namespace {

using ::testing::HasSubstr;

ProgramRun Script(const std::string& text) { return {.command = {"sh", "-c", text}}; }
absl::Status StatusOf(const ProgramRun& run) {
  const ProgramSignals signals;
  return RunProgram(run, signals).status();
}

// A pipe of which programs, and what they start, inherit the end that is written to.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
  }
  ~Pipe() { close(ends_[0]); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  // Whether all others that have inherited it are gone. Call it once.
  bool IsLeft() {
    close(ends_[1]);
    char byte = 0;
    return read(ends_[0], &byte, 1) == 0;
  }

 private:
  int ends_[2] = {};
};

TEST(RunProgram, GivesVariablesAndKeepsOutput) {
  const EnvironmentScope replaced("PENSTOCK_TEST_A", "old"), removed("PENSTOCK_TEST_B", "old");
  const EnvironmentScope kept("PENSTOCK_TEST_AB", "kept");
  absl::StatusOr<ScratchFolder> folder = ScratchFolder::Make();
  ASSERT_OK(folder.status());
  ProgramRun run = Script("echo $PENSTOCK_TEST_A,$PENSTOCK_TEST_B,$PENSTOCK_TEST_AB; echo error >&2");
  run.variables = {{"PENSTOCK_TEST_A", "new"}, {"PENSTOCK_TEST_B", ""}};
  run.output = folder->path() + "/output";
  ASSERT_OK(StatusOf(run));
  std::ifstream in(run.output);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "new,,kept\nerror\n");
  const std::string path = folder->path();
  {
    const ScratchFolder last = *std::move(folder);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RunProgram, KillsWhatRunsTooLong) {
  ProgramRun run{.command = {"sleep", "1000"}, .most_seconds = 0.01};
  const absl::Status late = StatusOf(run);
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(late), HasSubstr("'sleep' ran for more than 0.01 s"));
  run.command = {"true"};
  run.most_seconds = 1000;
  EXPECT_OK(StatusOf(run));
}

// Also those of another process group, and those that another one left behind.
TEST(RunProgram, KillsWhatALateProgramHasStarted) {
  if (!std::filesystem::exists("/proc/thread-self/children")) GTEST_SKIP() << "the kernel does not tell children";
  Pipe pipe;
  ProgramRun run = Script("sleep 10 & setsid sh -c 'sleep 10; true' & sh -c 'sleep 10 &'; sleep 10; true");
  run.most_seconds = 0.2;
  EXPECT_EQ(StatusOf(run).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(pipe.IsLeft());
}

TEST(RunProgram, PassesASignalOnToWhatTheProgramHasStarted) {
  if (!std::filesystem::exists("/proc/thread-self/children")) GTEST_SKIP() << "the kernel does not tell children";
  EXPECT_EXIT(
      {
        const ProgramSignals signals;
        Pipe pipe;
        RunProgram(Script("sleep 10 & kill -TERM $PPID; wait"), signals).IgnoreError();
        if (!pipe.IsLeft()) _exit(1);
      },
      testing::KilledBySignal(SIGTERM), "");
}

// What ignores the signal is killed in the end; without that, this would wait for a minute.
TEST(RunProgram, DoesNotWaitForWhatIgnoresTheSignal) {
  if (!std::filesystem::exists("/proc/thread-self/children")) GTEST_SKIP() << "the kernel does not tell children";
  EXPECT_EXIT(
      {
        const ProgramSignals signals;
        Pipe pipe;
        RunProgram(Script("trap '' TERM; sleep 60 & trap - TERM; kill -TERM $PPID; wait"), signals).IgnoreError();
        if (!pipe.IsLeft()) _exit(1);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(RunProgram, LeavesAloneWhatOutlivesAProgramThatEndsWell) {
  const absl::StatusOr<ScratchFolder> folder = ScratchFolder::Make();
  ASSERT_OK(folder.status());
  ProgramRun run = Script("sleep 1000 & echo $!");
  run.output = folder->path() + "/output";
  ASSERT_OK(StatusOf(run));
  pid_t left = 0;
  std::ifstream(run.output) >> left;
  ASSERT_GT(left, 0);
  EXPECT_EQ(kill(left, SIGKILL), 0);
  waitpid(left, nullptr, 0);
}

TEST(RunProgram, TellsAnInterruptFromAFailure) {
  EXPECT_EQ(StatusOf(Script("kill -INT $$")).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(StatusOf(Script("kill -TERM $$")).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(StatusOf(Script("exit 4")).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(StatusOf({}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::cli::run_program_test
