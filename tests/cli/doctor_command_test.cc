// penstock doctor: what it prints, its exit codes, and the programs that it runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "src/cli/machine_file.h"
#include "tests/analysis/made_job.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::cli::doctor_command_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The profile of a job with one slot, in a file. Its graph has a hostile name.
class DoctorCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    analysis::MadeJob made;
    const int g = made.Graph(
        "g\x1b[2J\n", 1,
        {{.name = "upload x", .kind = "upload", .device = 0}, {.name = "work", .kind = "kernel", .device = 0}});
    for (int r = 0; r < 20; ++r)
      made.Run(g, 0, r * 100, r * 100 + 1, r * 100 + 99)
          .Node(g, 0, r * 100 + 1, r * 100 + 50)
          .Node(g, 1, r * 100 + 50, r * 100 + 98);
    ASSERT_OK(made.profile().Write(file_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "doctor_command_test." + std::to_string(getpid());
  const std::string file_ = folder_ + "/app.profile";
  const EnvironmentScope config_{"XDG_CONFIG_HOME", folder_};
};

TEST_F(DoctorCommand, PrintsTheFigureFirstThenTheFindings) {
  const Ran ran = RunPenstock({"doctor", file_});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_THAT(ran.out, testing::StartsWith("wall 1.90 ms, floor 931 us (host:0 uploads), efficiency 49.0 %\n"));
  EXPECT_THAT(ran.out, HasSubstr("\n 1. one-slot, graph 'g\\x1b[2J\\x0a' (made.cc:1): "));
  EXPECT_THAT(ran.out, HasSubstr("CompileOptions::slots"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
  size_t column = 0;
  for (const char c : ran.out) {
    column = c == '\n' ? 0 : column + 1;
    EXPECT_LE(column, 100u);
  }
}

TEST_F(DoctorCommand, WritesJson) {
  const nlohmann::json json = nlohmann::json::parse(RunPenstock({"doctor", file_, "--json"}).out);
  EXPECT_NEAR(json.at("efficiency"), 100 * json.at("floor_us").get<double>() / json.at("wall_us").get<double>(), 1e-9);
  ASSERT_EQ(json.at("findings").size(), 1u);
  const nlohmann::json& finding = json["findings"][0];
  EXPECT_EQ(finding.at("rule"), "one-slot");
  EXPECT_EQ(finding.at("graph"), 0);
  EXPECT_EQ(finding.at("node"), -1);
  EXPECT_EQ(finding.at("where"), "made.cc:1");
  EXPECT_NEAR(finding.at("gain"), 0.51, 0.01);
  EXPECT_FALSE(finding.at("evidence").empty());
}

TEST_F(DoctorCommand, FailsUnderALimit) {
  EXPECT_EQ(RunPenstock({"doctor", file_, "--fail-under", "48"}).code, kDone);
  const Ran below = RunPenstock({"doctor", file_, "--fail-under", "50"});
  EXPECT_EQ(below.code, kFinding);
  EXPECT_THAT(below.err, HasSubstr("the efficiency is 49.0 %, below 50 %"));
  EXPECT_THAT(below.out, HasSubstr("one-slot"));
  analysis::MadeJob once;
  once.Run(once.Graph("g", 1, {{.name = "work", .kind = "kernel", .device = 0}}), 0, 0, 1, 9);
  ASSERT_OK(once.profile().Write(folder_ + "/once.profile"));
  const Ran unknown = RunPenstock({"doctor", folder_ + "/once.profile", "--fail-under", "50"});
  EXPECT_EQ(unknown.code, kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("--fail-under needs a graph that ran at least twice"));
}

// A device that computes all the time is no fault, and one that computes for 85 % of it is not at its best.
TEST_F(DoctorCommand, SaysThatAllIsWellWhereKernelsFillTheDevice) {
  const auto write = [&](double busy) {
    analysis::MadeJob made;
    const int g = made.Graph("g", 2, {{.name = "work", .kind = "kernel", .where = "a.cc:7", .device = 0}});
    for (int r = 0; r < 40; ++r) {
      made.Run(g, r % 2, r * 100 - 100, r * 100 - 99, r * 100 + 100).Node(g, 0, r * 100, r * 100 + busy);
    }
    EXPECT_OK(made.profile().Write(file_));
  };
  write(96);
  const Ran full = RunPenstock({"doctor", file_, "--fail-under", "90"});
  EXPECT_EQ(full.code, kDone);
  EXPECT_THAT(full.out, AllOf(HasSubstr("all is well"), HasSubstr("compute-bound, graph 'g', node 'work' (a.cc:7)")));
  write(85);
  const Ran idle = RunPenstock({"doctor", file_});
  EXPECT_THAT(idle.out, Not(HasSubstr("all is well")));
  EXPECT_THAT(idle.out, Not(HasSubstr("compute-bound")));
}

TEST_F(DoctorCommand, ShowsOneRule) {
  EXPECT_THAT(RunPenstock({"doctor", file_, "--rule", "one-slot"}).out, HasSubstr("one-slot"));
  EXPECT_THAT(RunPenstock({"doctor", file_, "--rule", "idle-gaps"}).out, HasSubstr("that rule found nothing"));
  EXPECT_EQ(RunPenstock({"doctor", file_, "--rule", "no-such-rule"}).code, kFailed);
}

TEST_F(DoctorCommand, RefusesWhatIsNeitherAFileNorAProgram) {
  EXPECT_EQ(RunPenstock({"doctor"}).code, kFailed);
  EXPECT_EQ(RunPenstock({"doctor", "--exec"}).code, kFailed);
  const Ran both = RunPenstock({"doctor", file_, "--exec", "true"});
  EXPECT_EQ(both.code, kFailed);
  EXPECT_THAT(both.err, HasSubstr("takes a profile's FILE, or --exec"));
  EXPECT_EQ(RunPenstock({"doctor", folder_ + "/none"}).code, kFailed);
}

// Of a graph that has not been launched, or if the runs are not to count.
TEST_F(DoctorCommand, EstimatesRunsOfAProgramThatHasLaunchedNone) {
  analysis::MadeJob made(/*is_cuda=*/true);
  made.Graph("g\x1b[2J\n", 2,
             {{.name = "upload x", .kind = "upload", .device = 0, .read_bytes = 1000, .written_bytes = 1000},
              {.name = "work", .kind = "kernel", .device = 0, .after = {0}, .read_bytes = 1000}});
  made.profile().devices[0].memory_bytes = int64_t{1} << 30;
  made.profile().graphs[0].slot_device_bytes = 1 << 20;
  const std::string file = folder_ + "/before.profile";
  ASSERT_OK(made.profile().Write(file));
  const Ran ran = RunPenstock({"doctor", file});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  ExpectPlain(ran.out);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("Before a run"), HasSubstr("Assumed, since no machine file"),
                             HasSubstr("cuda:0 memory 300 GB/s"), HasSubstr("graph 10 'g\\x1b[2J\\x0a'"),
                             HasSubstr("bounds it"), HasSubstr("at most 1024 slots fit"), HasSubstr("a run on streams"),
                             HasSubstr("too small     for a GPU: ")));
  const nlohmann::json json = nlohmann::json::parse(RunPenstock({"doctor", file, "--json"}).out);
  ASSERT_EQ(json.at("estimates").size(), 1u);
  const nlohmann::json& estimate = json["estimates"][0];
  EXPECT_EQ(estimate.at("up_bytes"), 1000);
  EXPECT_EQ(estimate.at("most_slots"), 1024);
  EXPECT_EQ(estimate.at("bound"), "cuda:0 uploads");
  EXPECT_EQ(estimate.at("too_small"), true);
  EXPECT_EQ(estimate.at("runs").size(), 4u);
  EXPECT_FALSE(json.at("assumed").empty());

  EXPECT_THAT(RunPenstock({"doctor", file_}).out, Not(HasSubstr("Before a run")));
  EXPECT_THAT(RunPenstock({"doctor", file_, "--before"}).out, HasSubstr("Before a run"));
  const Ran gate = RunPenstock({"doctor", file, "--fail-under", "50"});
  EXPECT_EQ(gate.code, kFailed);
  EXPECT_THAT(gate.err, HasSubstr("--fail-under needs runs"));
}

// What calibrate has kept is taken, if it is of the profile's machine.
TEST_F(DoctorCommand, KnowsTheMachineFileThatIsKept) {
  analysis::Machine machine;
  machine.host = "a processor";
  machine.devices = {{.name = "host:0", .description = "made"}};
  machine.peers = {{0}};
  std::filesystem::create_directory(folder_ + "/penstock");
  const std::string kept = folder_ + "/penstock/machine.json";
  const auto before = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"doctor", file_, "--before"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPenstock(arguments);
  };
  ASSERT_OK(WriteMachine(kept, machine, "2026-11-28"));
  EXPECT_THAT(before({}).out, HasSubstr("'" + kept + "'"));
  EXPECT_THAT(before({}).err, IsEmpty());
  machine.quick = true;
  ASSERT_OK(WriteMachine(kept, machine, "2026-11-28"));
  EXPECT_THAT(before({}).err, HasSubstr("is of a quick run"));
  machine.devices[0].description = "another";
  ASSERT_OK(WriteMachine(kept, machine, "2026-11-28"));
  EXPECT_THAT(before({}).out, Not(HasSubstr(kept)));
  EXPECT_THAT(before({"--machine", kept}).err, HasSubstr("it is of another machine"));
  std::ofstream(kept) << "{";
  EXPECT_EQ(before({}).code, kDone);
  EXPECT_THAT(before({}).err, HasSubstr("is left out"));
  EXPECT_EQ(before({"--machine", kept}).code, kFailed);
}

// All behind --exec is the program's, whatever it is called. What it prints goes elsewhere, and the file is gone
// afterwards.
TEST_F(DoctorCommand, RunsAProgramAndLooksAtItsProfile) {
  const EnvironmentScope temporary("TMPDIR", folder_);
  const EnvironmentScope outer("PENSTOCK_PROFILE", folder_ + "/not.this");
  testing::internal::CaptureStderr();
  const Ran ran = RunPenstock(
      {"doctor", "--json", "--exec", "sh", "-c", "echo $0 $1; cp " + file_ + " $PENSTOCK_PROFILE", "--rule", "--help"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--rule --help"));
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["findings"][0]["rule"], "one-slot");
  size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++left;
  EXPECT_EQ(left, 1u);
}

// Not the file of the one who asks, which may be recorded too.
TEST_F(DoctorCommand, GivesAProgramAFileOfItsOwn) {
  const EnvironmentScope outer("PENSTOCK_PROFILE", folder_ + "/not.this");
  testing::internal::CaptureStderr();
  RunPenstock({"doctor", "--exec", "env"});
  const std::string variables = testing::internal::GetCapturedStderr();
  EXPECT_THAT(variables, HasSubstr("PENSTOCK_PROFILE="));
  EXPECT_THAT(variables, Not(HasSubstr("not.this")));
}

// Each process has a file of its own. The program's own profile counts, else the largest.
TEST_F(DoctorCommand, KeepsTheProfilesOfSeveralProcessesApart) {
  const EnvironmentScope temporary("TMPDIR", folder_ + "/tmp");
  std::filesystem::create_directories(folder_ + "/tmp");
  const std::string small = folder_ + "/small.profile";
  ASSERT_OK(Profile().Write(small));
  const auto run = [&](const std::string& script) {
    return RunPenstock({"doctor", "--exec", "sh", "-c", "p=${PENSTOCK_PROFILE%?p}; " + script});
  };
  const Ran children = run("cp " + small + " ${p}1; cp " + file_ + " ${p}2; cp " + small + " ${p}3");
  EXPECT_THAT(children.err, HasSubstr("3 processes have recorded profiles"));
  EXPECT_THAT(children.out, HasSubstr("one-slot"));
  const Ran own = run("cp " + small + " ${p}$$; cp " + file_ + " ${p}2");
  EXPECT_THAT(own.out, Not(HasSubstr("one-slot")));
  const Ran runtimes = run("cp " + file_ + " ${p}$$; cp " + small + " ${p}$$.2");
  EXPECT_THAT(runtimes.err, HasSubstr("several runtimes"));
  EXPECT_THAT(runtimes.out, HasSubstr("one-slot"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/tmp"));
}

// The signal ends the program, then this process, and nothing is left.
TEST_F(DoctorCommand, LeavesNothingBehindIfItIsTerminated) {
  const EnvironmentScope temporary("TMPDIR", folder_ + "/tmp");
  std::filesystem::create_directories(folder_ + "/tmp");
  for (const std::string signal : {"TERM", "HUP"}) {
    EXPECT_EXIT(RunPenstock({"doctor", "--exec", "sh", "-c", "kill -" + signal + " $PPID; exec sleep 1000"}),
                testing::KilledBySignal(signal == "TERM" ? SIGTERM : SIGHUP), "");
    EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/tmp"));
  }
}

TEST_F(DoctorCommand, SaysHowAProgramFailed) {
  const EnvironmentScope temporary("TMPDIR", folder_);
  const Ran failed = RunPenstock({"doctor", "--exec", "sh", "-c", "exit 7"});
  EXPECT_EQ(failed.code, kFailed);
  EXPECT_THAT(failed.err, HasSubstr("'sh' ended with exit code 7"));
  EXPECT_THAT(RunPenstock({"doctor", "--exec", "sh", "-c", "kill -9 $$"}).err, HasSubstr("signal 9"));
  EXPECT_THAT(RunPenstock({"doctor", "--exec", folder_ + "/none"}).err, HasSubstr("cannot start"));
  EXPECT_THAT(RunPenstock({"doctor", "--exec", "true"}).err, HasSubstr("recorded no profile"));
}

}  // namespace
}  // namespace penstock::cli::doctor_command_test
