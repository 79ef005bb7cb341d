// penstock tune: how it runs a program, what it writes, and what it never writes over.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "penstock/settings.h"
#include "src/analysis/propose_settings.h"
#include "src/cli/run_program.h"
#include "tests/analysis/made_job.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::cli::tune_command_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string TextOfFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TuneCommand : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Stands for a program: a shell script whose runs take 100 us, or 50 us with 4 slots. It fails with 16, and measures
  // nothing with 8.
  std::vector<std::string> Tune(std::vector<std::string> options, const std::string& more = "") {
    const std::string script =
        "case \"$(cat $PENSTOCK_SETTINGS)\" in *'slots = 16'*) echo no memory; exit 3;; *'slots = 8'*) exit 0;; "
        "*'slots = 4'*) us=50;; *) "
        "us=100;; "
        "esac; " +
        more +
        "printf 'penstock measurement 1\\nruns = 9\\nrun_us = %s\\nopen = graph \"g\".slots\\nend\\n' $us "
        ">${PENSTOCK_MEASURE%?p}$$";
    std::vector<std::string> all = {"tune", "--out", out_, "--budget", "1000"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--exec", "sh", "-c", script});
    return all;
  }

  const std::string folder_ = testing::TempDir() + "tune_command_test." + std::to_string(getpid());
  const std::string out_ = folder_ + "/app.settings";
  const EnvironmentScope temporary_{"TMPDIR", folder_};
};

TEST_F(TuneCommand, FindsAndWritesTheSettingsOfAProgram) {
  const Ran ran = RunPenstock(Tune({}));
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_EQ(TextOfFile(out_), "penstock settings 1\ngraph \"g\".slots = 4\nend\n");
  EXPECT_THAT(ran.out, HasSubstr("100 us a run before, 50.0 us with what was found, 50.0 % less"));
  EXPECT_THAT(ran.out, HasSubstr("PENSTOCK_SETTINGS=" + out_));
  EXPECT_THAT(ran.out, HasSubstr("refused: graph \"g\".slots = 16: 'sh' ended with exit code 3; its output ends"));
  size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++left;
  EXPECT_EQ(left, 1u);
}

TEST_F(TuneCommand, WritesJson) {
  const nlohmann::json json = nlohmann::json::parse(RunPenstock(Tune({"--json"})).out);
  EXPECT_EQ(json.at("settings"), TextOfFile(out_));
  EXPECT_EQ(json.at("after_us"), 50);
  EXPECT_THAT(json.at("stopped").get<std::string>(), HasSubstr("more than 2 % better"));
  int taken = 0, refused = 0;
  for (const nlohmann::json& trial : json.at("tried")) {
    EXPECT_EQ(trial.at("key"), "graph \"g\".slots");
    taken += trial.at("verdict") == "taken" ? 1 : 0;
    refused += trial.at("verdict") == "refused" ? 1 : 0;
  }
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(refused, 2);
}

TEST_F(TuneCommand, WritesOverNothing) {
  std::ofstream(out_) << "mine";
  const Ran ran = RunPenstock(Tune({}, "touch " + folder_ + "/ran; "));
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, HasSubstr("is there already"));
  EXPECT_EQ(TextOfFile(out_), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
  EXPECT_EQ(RunPenstock(Tune({"--force"})).code, kDone);
  EXPECT_THAT(TextOfFile(out_), HasSubstr("slots = 4"));
}

TEST_F(TuneCommand, LooksWhetherItMayWriteBeforeItRuns) {
  const std::string nowhere = folder_ + "/none/app.settings";
  const Ran ran = RunPenstock({"tune", "--force", "--out", nowhere, "--exec", "touch", folder_ + "/ran"});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, HasSubstr("settings file '" + nowhere + "'"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
}

TEST_F(TuneCommand, PrintsWhatItCannotWrite) {
  const Ran ran = RunPenstock(Tune({}, "echo theirs >" + out_ + "; "));
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, HasSubstr("is there already"));
  EXPECT_THAT(ran.out, HasSubstr("\ngraph \"g\".slots = 4\n"));
  EXPECT_EQ(TextOfFile(out_), "theirs\n");
}

// What a terminal does: the signal goes to both, and the program ends well.
TEST_F(TuneCommand, EndsWhenItIsInterrupted) {
  for (const int signal : {SIGINT, SIGQUIT}) {
    const auto before = std::signal(signal, SIG_DFL);  // it may be ignored where tests run
    const std::string number = std::to_string(signal);
    const std::string handled = "trap 'exit 0' " + number + "; kill -" + number + " $PPID; kill -" + number + " $$; ";
    const Ran ran = RunPenstock(Tune({"--force"}, "echo >>" + folder_ + "/rounds; " + handled));
    std::signal(signal, before);
    EXPECT_EQ(ran.code, kFailed);
    EXPECT_THAT(ran.err, HasSubstr("interrupted by signal " + number));
    EXPECT_EQ(TextOfFile(folder_ + "/rounds"), signal == SIGINT ? "\n" : "\n\n");
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
}

TEST_F(TuneCommand, StartsNoProgramAfterAnInterrupt) {
  const auto before = std::signal(SIGINT, SIG_DFL);
  {
    const ProgramSignals signals;
    std::raise(SIGINT);
    EXPECT_EQ(RunProgram({.command = {"touch", folder_ + "/ran"}}, signals).status().code(),
              absl::StatusCode::kCancelled);
  }
  std::signal(SIGINT, before);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
}

// Each has a file of its own. The program's own counts, else that of the only other one.
TEST_F(TuneCommand, KeepsTheMeasurementsOfSeveralProcessesApart) {
  const std::string measure =
      "m() { printf 'penstock measurement 1\nruns = 9\nrun_us = %s\nopen = runtime.workers\nend\n' $2 "
      ">${PENSTOCK_MEASURE%?p}$1; }; ";
  const auto tune = [&](const std::string& script) {
    return RunPenstock({"tune", "--json", "--budget", "0.01", "--out", out_, "--exec", "sh", "-c", measure + script});
  };
  const auto before = [](const Ran& ran) { return nlohmann::json::parse(ran.out).at("before_us").get<double>(); };
  EXPECT_EQ(before(tune("m 1 5; m $$ 7; m 2 5")), 7);
  EXPECT_EQ(before(tune("m 1 5; m 1.2 6")), 5);
  EXPECT_THAT(tune("m 1 5; m 1.2 6").err, HasSubstr("several runtimes"));
  EXPECT_THAT(tune("m 1 5; m 2 6").err, HasSubstr("2 processes that it started measured; name the program itself"));
}

TEST_F(TuneCommand, BeginsWithTheSettingsOfAFile) {
  std::ofstream(folder_ + "/from") << "penstock settings 1\nruntime.workers = 3\ngraph \"g\".slots = 4\nend\n";
  const Ran ran = RunPenstock(Tune({"--from", folder_ + "/from"}));
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_EQ(TextOfFile(out_), TextOfFile(folder_ + "/from"));
  std::ofstream(folder_ + "/from") << "penstock settings 1\ngraph \"g\".slots = no\nend\n";
  EXPECT_THAT(RunPenstock(Tune({"--force", "--from", folder_ + "/from"}, "touch " + folder_ + "/ran; ")).err,
              HasSubstr("/from': line 2: "));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
}

TEST_F(TuneCommand, WritesNothingIfNothingIsBetter) {
  const Ran ran = RunPenstock(Tune({}, "us=70; "));
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Nothing to write"));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(TuneCommand, SaysWhyAProgramCannotBeTuned) {
  const auto error = [&](const std::string& script, std::vector<std::string> options = {}) {
    std::vector<std::string> all = {"tune", "--out", out_};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--exec", "sh", "-c", script});
    const Ran ran = RunPenstock(all);
    EXPECT_EQ(ran.code, kFailed);
    EXPECT_FALSE(std::filesystem::exists(out_));
    return ran.err;
  };
  EXPECT_THAT(error("printf 'one\\033[2J\\ntwo'; exit 7"),
              HasSubstr("ended with exit code 7; its output ends with: one\\x1b[2J\\x0atwo"));
  EXPECT_THAT(error("true"), HasSubstr("has measured nothing"));
  EXPECT_THAT(error("echo damaged >$PENSTOCK_MEASURE"), HasSubstr("line 1"));
  const std::string head = "printf 'penstock measurement 1\\nruns = 9\\nrun_us = 5\\n";
  EXPECT_THAT(error(head + "end\\n' >$PENSTOCK_MEASURE"), HasSubstr("leaves no choice open"));
  EXPECT_THAT(error(head + "open = graph \"g\".slots\\nend\\n' >$PENSTOCK_MEASURE", {"--knob", "mode"}),
              HasSubstr("nothing that the program leaves open: graph \"g\".slots"));
  EXPECT_THAT(error("kill -INT $$"), HasSubstr("signal 2"));
  EXPECT_EQ(RunPenstock({"tune"}).code, kFailed);
  EXPECT_EQ(RunPenstock({"tune", "--exec"}).code, kFailed);
  EXPECT_EQ(RunPenstock({"tune", folder_ + "/none"}).code, kFailed);
}

// 40 runs in one slot of an upload and a kernel of 40 us each, which two slots would overlap.
Profile OneSlot(const std::string& name) {
  analysis::MadeJob made(/*is_cuda=*/true);
  const int g = made.Graph(name, 1,
                           {{.name = "upload x", .kind = "upload", .device = 0},
                            {.name = "work", .kind = "kernel", .device = 0, .after = {0}}});
  for (int r = 0; r < 40; ++r) {
    made.Run(g, 0, r * 100, r * 100 + 1, r * 100 + 90)
        .Node(g, 0, r * 100 + 5, r * 100 + 45)
        .Node(g, 1, r * 100 + 45, r * 100 + 85);
  }
  return made.profile();
}

TEST_F(TuneCommand, ProposesFromAProfile) {
  ASSERT_OK(OneSlot("g\x1b").Write(folder_ + "/app.profile"));
  const Ran ran = RunPenstock({"tune", folder_ + "/app.profile", "--out", out_});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Predictions of the simulator"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(TextOfFile(out_), HasSubstr("graph \"g\\x1b\".slots = "));
  const nlohmann::json json =
      nlohmann::json::parse(RunPenstock({"tune", "--json", "--force", folder_ + "/app.profile", "--out", out_}).out);
  EXPECT_EQ(json.at("predicted"), true);
  EXPECT_EQ(json.at("settings"), TextOfFile(out_));
}

TEST(ProposeSettings, TakesTheFewestSlotsThatAreAsGood) {
  const analysis::Proposal proposal = analysis::ProposeSettings(OneSlot("g"));
  ASSERT_TRUE(proposal.settings.graphs.contains("g"));
  const int slots = proposal.settings.graphs.at("g").slots.value_or(1);
  EXPECT_GT(slots, 1);
  EXPECT_LT(slots, 8);
  EXPECT_TRUE(proposal.ways.front().as_measured);
}

TEST_F(TuneCommand, TakesNoOptionsOfRoundsForAProfile) {
  ASSERT_OK(OneSlot("g").Write(folder_ + "/app.profile"));
  for (const std::string option : {"--budget=9", "--from=x", "--knob=slots", "--measure=wall"}) {
    const Ran ran = RunPenstock({"tune", folder_ + "/app.profile", "--out", out_, option});
    EXPECT_EQ(ran.code, kFailed) << option;
    EXPECT_THAT(ran.err, HasSubstr("use --exec"));
  }
}

TEST(ProposeSettings, LeavesAloneWhatIsStatedOrNotKnown) {
  const auto proposed = [](const Profile& profile) { return analysis::ProposeSettings(profile).settings.graphs["g"]; };
  EXPECT_TRUE(proposed(OneSlot("g")).slots);
  Profile profile = OneSlot("g");
  profile.open = {"graph \"g\".mode", "graph \"other\".slots"};
  EXPECT_FALSE(proposed(profile).slots);
  profile.open = {"graph \"g\".slots"};
  EXPECT_TRUE(proposed(profile).slots);
  for (const auto& way : analysis::ProposeSettings(profile).ways) EXPECT_EQ(way.mode, Mode::kGraph);
  profile.open = std::vector<std::string>();
  EXPECT_THAT(analysis::ProposeSettings(profile).ways, IsEmpty());
  profile = OneSlot("g");
  profile.spans.push_back({.name = "w", .track = "t", .kind = SpanKind::kWait, .device = 0, .executable = 10});
  EXPECT_FALSE(proposed(profile).slots);
  profile = OneSlot("g");
  profile.devices[0].is_cuda = false;
  for (const auto& way : analysis::ProposeSettings(profile).ways) EXPECT_EQ(way.mode, Mode::kGraph);
}

TEST(ProposeSettings, KeepsToStreamsWhereThereAreNoGraphs) {
  Profile profile = OneSlot("g");
  profile.graphs[0].report.mode = Mode::kStream;
  const auto as_graphs = [](const analysis::Proposal& proposal) {
    return std::count_if(proposal.ways.begin(), proposal.ways.end(),
                         [](const analysis::Proposal::Way& way) { return way.mode == Mode::kGraph; });
  };
  EXPECT_GT(as_graphs(analysis::ProposeSettings(profile)), 0);
  profile.graphs[0].report.notes = {"no graphs: a node is a callback"};
  const analysis::Proposal proposal = analysis::ProposeSettings(profile);
  EXPECT_EQ(as_graphs(proposal), 0);
  EXPECT_FALSE(proposal.ways.empty());
  EXPECT_THAT(proposal.notes, testing::ElementsAre(HasSubstr("a node is a callback")));
}

TEST(ProposeSettings, LeavesOutWhatHasNotRun) {
  analysis::MadeJob made(/*is_cuda=*/true);
  made.Graph("idle", 2, {{.name = "work", .kind = "kernel", .device = 0}});
  const analysis::Proposal proposal = analysis::ProposeSettings(made.profile());
  EXPECT_EQ(proposal.settings, Settings());
  EXPECT_THAT(proposal.notes, testing::ElementsAre(HasSubstr("graph 'idle' is left out")));
}

}  // namespace
}  // namespace penstock::cli::tune_command_test
