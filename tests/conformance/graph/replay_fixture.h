// Executables in graph mode, with what their runs change at the driver interface counted beside what their ledgers say.
#pragma once

#include <algorithm>
#include <ostream>
#include <utility>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance {

class ReplayConformance : public GraphConformance {
 protected:
  using Kind = driver::checked::CallKind;

  int64_t Count(Kind kind) { return checks_->witness().log().count(kind); }

  // What a run and its launch changed.
  struct Changes {
    int64_t launched = 0, set = 0, switched = 0, alone = 0;
    bool operator==(const Changes&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Changes& c) {
      return out << c.launched << " launched, " << c.set << " set, " << c.switched << " switched, " << c.alone
                 << " submitted alone";
    }
  };
  Changes Seen() {
    return {Count(Kind::kLaunchGraph), Count(Kind::kSetNode) + Count(Kind::kSetChild), Count(Kind::kEnableNode),
            Count(Kind::kLaunch) + Count(Kind::kCopy) + Count(Kind::kCopyBatch) + Count(Kind::kFill) +
                Count(Kind::kExternal)};
  }
  Changes OfRun(Executable& exec, const Bindings& io) {
    const Changes before = Seen();
    absl::StatusOr<penstock::Run> run = exec.Launch(io);
    EXPECT_OK(run.status());
    if (!run.ok()) return {};
    EXPECT_OK(run->Wait());
    CheckLedger(exec);
    const Changes now = Seen();
    return {now.launched - before.launched, now.set - before.set, now.switched - before.switched,
            now.alone - before.alone};
  }
  // The runtime has made no other executable.
  void CheckLedger(const Executable& exec) {
    const SubmissionReport submission_report = exec.submission_report();
    EXPECT_EQ(submission_report.mode, Mode::kGraph);
    EXPECT_EQ(submission_report.graphs, Count(Kind::kInstantiate));
    EXPECT_GE(submission_report.graphs, Count(Kind::kUpload));
    EXPECT_EQ(submission_report.graph_nodes, Count(Kind::kAddNode) + Count(Kind::kAddChild));
    EXPECT_EQ(submission_report.captures, Count(Kind::kEndCapture));
    EXPECT_EQ(submission_report.instantiating_us > 0, submission_report.graphs > 0);
    EXPECT_EQ(submission_report.capturing_us > 0, submission_report.captures > 0);
    EXPECT_EQ(submission_report.graph_launches, Count(Kind::kLaunchGraph));
    EXPECT_EQ(submission_report.nodes_set, Count(Kind::kSetNode) + Count(Kind::kSetChild));
    EXPECT_EQ(submission_report.nodes_switched, Count(Kind::kEnableNode));
  }
  Executable Compiled(const Graph& g, CompileOptions options = {.slots = 1}) {
    absl::StatusOr<Executable> exec = runtime_->Compile(g, std::move(options));
    EXPECT_OK(exec.status());
    return exec.ok() ? *exec : Executable();
  }
  HostBuffer<int32_t> Pinned(int64_t n, int32_t value) {
    absl::StatusOr<HostBuffer<int32_t>> buffer = runtime_->MakeHostBuffer<int32_t>(n);
    EXPECT_OK(buffer.status());
    std::fill(buffer->begin(), buffer->end(), value);
    return *std::move(buffer);
  }
};

}  // namespace penstock::conformance
