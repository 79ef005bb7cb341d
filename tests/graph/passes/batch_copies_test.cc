// Gather: which small copies are submitted together, which host copies a worker does in one go, and which stay apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/graph/oracle/draft_after.h"
#include "tests/graph/oracle/execution.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/shape_oracle.h"

namespace penstock::graph::batch_copies_test {
namespace {

constexpr int64_t kSmall = 4096;  // elements of 4 bytes

// The submissions of each lane in order, those of several nodes as "first..last (count)".
std::string Submissions(const Plan& plan) {
  std::vector<std::string> lanes(plan.lanes.size());
  for (const Command& c : plan.commands) {
    if (c.op != Command::Op::kNode) continue;
    std::string& text = lanes[c.lane];
    text += (text.empty() ? "" : ", ") + plan.nodes[c.arg].name;
    if (c.count == 1) continue;
    text += ".." + plan.nodes[static_cast<size_t>(c.arg + c.count) - 1].name + " (" + std::to_string(c.count) + ")";
  }
  std::string all;
  for (const std::string& text : lanes) all += (all.empty() ? "" : " | ") + text;
  return all;
}

// How many host steps each task of a worker has.
std::vector<int> Tasks(const Plan& plan) {
  std::vector<int> tasks;
  for (const HostStep& step : plan.host_steps) step.joins ? ++tasks.back() : (tasks.push_back(1), 1);
  return tasks;
}

size_t Count(const Plan& plan, Command::Op op) {
  return static_cast<size_t>(std::count_if(plan.commands.begin(), plan.commands.begin() + plan.epilogue_begin,
                                           [&](const Command& c) { return c.op == op; }));
}

std::vector<int32_t> Inputs(ModelBuilder& g, int count, int64_t elements, Where where = kPinned) {
  std::vector<int32_t> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(g.Input("x" + std::to_string(i), Extent(elements), where));
  return buffers;
}

// A kernel for each buffer.
void Use(ModelBuilder& g, const std::vector<int32_t>& buffers, const char* name = "k") {
  for (size_t i = 0; i < buffers.size(); ++i) g.For(name + std::to_string(i), In{buffers[i]});
}

void ExpectSound(const ModelBuilder& g, const Plan& plan, const PlanOptions& options = Devices(1)) {
  EXPECT_EQ(CheckShape(g.model, options, plan), "") << PrintText(plan, g.model);
  EXPECT_EQ(CheckOrder(g.model, plan), "") << PrintText(plan, g.model);
}

TEST(Gather, FiveSmallUploadsAreOneSubmission) {
  ModelBuilder four, five;
  for (const auto& [g, count] : {std::pair(&four, 4), std::pair(&five, 5)}) {
    const std::vector<int32_t> x = Inputs(*g, count, kSmall);
    for (int i = 1; i < count; ++i) g->For("k" + std::to_string(i), In{x[0]}, In{x[i]});
  }
  EXPECT_EQ(Submissions(PlanOf(four)).substr(0, 42), "upload x0, upload x1, upload x2, upload x3");
  const Plan plan = PlanOf(five);
  EXPECT_EQ(Submissions(plan).substr(0, 28), "upload x0..upload x4 (5) | k");
  EXPECT_EQ(Count(plan, Command::Op::kRecord), 1u) << "all wait for the batch, not for one of its copies";
  ExpectSound(five, plan);
}

TEST(Gather, CanBeTurnedOff) {
  ModelBuilder g;
  Use(g, Inputs(g, 9, kSmall, kHost));
  PlanOptions options = Devices(1);
  options.batch_from = INT32_MAX;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(plan.pieces_offset, -1);
  EXPECT_EQ(Tasks(plan), std::vector<int>(9, 1));
  for (const Command& c : plan.commands) EXPECT_EQ(c.count, 1);
}

TEST(Gather, CopiesOf256KiBStayOnTheirOwn) {
  ModelBuilder g;
  std::vector<int32_t> x = Inputs(g, 5, 65535);
  x.push_back(g.Input("large", 65536, kPinned));
  Use(g, x);
  EXPECT_EQ(Submissions(PlanOf(g)).substr(0, 38), "upload large, upload x0..upload x4 (5)");
}

TEST(Gather, ABoxCountsWithItsOwnBytes) {
  ModelBuilder g;
  const int32_t x = g.Input("x", Extent(1 << 20), kPinned);
  const int32_t y = g.Scratch("y", Extent(1 << 20));
  for (int i = 0; i < 8; ++i) {
    const int32_t copy = g.Copy("c" + std::to_string(i), x, y);
    for (AccessDecl& access : g.node(copy).accesses) access.box = Slice(i << 16, i < 5 ? 65535 : 65536);
  }
  g.For("k", In{y, Slice(0, 65535)});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(Submissions(plan).substr(0, 26), "c0..c4 (5), c5, c6, c7 | k") << PrintText(plan, g.model);
  ExpectSound(g, plan);
}

TEST(Gather, DirectionsAndDevicesStayApart) {
  ModelBuilder g;
  const std::vector<int32_t> x = Inputs(g, 6, kSmall);
  for (int i = 0; i < 12; ++i) {
    const int32_t y = g.Output("y" + std::to_string(i), Extent(kSmall), kPinned);
    g.node(g.For("k" + std::to_string(i), In{x[i % 6]}, Out{y})).device = i / 6;
  }
  const Plan plan = PlanOf(g, Devices(2));
  const std::string text = Submissions(plan);
  for (const char* batch :
       {"upload x0..upload x5 (6)", "download y0..download y5 (6)", "download y6..download y11 (6)"}) {
    EXPECT_NE(text.find(batch), std::string::npos) << batch << " in " << text;
  }
  EXPECT_EQ(std::count_if(plan.commands.begin(), plan.commands.end(), [](const Command& c) { return c.count == 6; }),
            4);
  ExpectSound(g, plan, Devices(2));
}

// What is expected to be ready later does not hold the others up.
TEST(Gather, CopiesReadyAtOtherTimesStayApart) {
  ModelBuilder g;
  PlanOptions options = Devices(1);
  for (int i = 0; i < 10; ++i) {
    g.For("k" + std::to_string(i), Out{g.Output("y" + std::to_string(i), Extent(kSmall), kPinned)});
    options.costs.push_back(i < 5 ? 10 : 40);
  }
  const Plan plan = PlanOf(g, options);
  EXPECT_NE(Submissions(plan).find("download y0..download y4 (5)"), std::string::npos) << Submissions(plan);
  EXPECT_NE(Submissions(plan).find("download y5..download y9 (5)"), std::string::npos) << Submissions(plan);
  options.costs.assign(10, 10);
  for (size_t i = 5; i < 10; ++i) options.costs[i] = 30;
  EXPECT_NE(Submissions(PlanOf(g, options)).find("(10)"), std::string::npos);
}

// y is computed from the batch, so what is copied from it afterwards cannot be in it.
TEST(Gather, WhatWaitsForABatchIsInAnother) {
  ModelBuilder g;
  const std::vector<int32_t> x = Inputs(g, 5, kSmall);
  const int32_t y = g.Scratch("y", kSmall, kPinned);
  g.Host("h", In{x[0]}, Out{y});
  for (int i = 0; i < 5; ++i) {
    const int32_t z = g.Scratch("z" + std::to_string(i), kSmall);
    g.Copy("up" + std::to_string(i), y, z);
    g.For("k" + std::to_string(i), In{x[i]}, In{z});
  }
  const Plan plan = PlanOf(g);
  EXPECT_EQ(Submissions(plan).substr(0, 40), "upload x0..upload x4 (5), up0..up4 (5) |") << PrintText(plan, g.model);
  ExpectSound(g, plan);
}

TEST(Gather, ABatchHas4MiBAtMost) {
  ModelBuilder g;
  Use(g, Inputs(g, 40, 32768));  // of 128 KiB
  std::vector<int> counts;
  for (const Command& c : PlanOf(g).commands) {
    if (c.count > 1) counts.push_back(c.count);
  }
  EXPECT_EQ(counts, (std::vector<int>{32, 8}));
}

// Whoever else uses the State waits for what touches it, and would wait for all the others.
TEST(Gather, CopiesOfStatesStayOnTheirOwn) {
  ModelBuilder g;
  std::vector<int32_t> x = Inputs(g, 6, kSmall);
  const int32_t s = g.State("s", kSmall);
  g.Copy("set", x[5], s);
  x.pop_back();
  Use(g, x);
  const Plan plan = PlanOf(g);
  for (const Command& c : plan.commands) EXPECT_TRUE(c.count == 1 || c.count == 5);
  for (const PlanNode& node : plan.nodes) EXPECT_EQ(node.batch >= 0, node.kind == PlanKind::kUpload && node.decl < 0);
  ExpectSound(g, plan);
}

// 256 pieces of 16 KiB that are not pinned: 16 of them a task, then one submission; and the same on the way back.
TEST(Gather, UnpinnedPiecesAreStagedInTasksOf256KiB) {
  ModelBuilder g;
  for (int i = 0; i < 256; ++i) {
    const int32_t x = g.Input("x" + std::to_string(i), kSmall), y = g.Output("y" + std::to_string(i), kSmall);
    g.For("k" + std::to_string(i), In{x}, Out{y});
  }
  const Plan plan = PlanOf(g);
  EXPECT_EQ(Tasks(plan), std::vector<int>(32, 16));
  EXPECT_EQ(plan.segments[0].after_hosts.size(), 16u) << "the last step stands for a task";
  EXPECT_EQ(std::count_if(plan.commands.begin(), plan.commands.end(), [](const Command& c) { return c.count == 256; }),
            2);
  EXPECT_EQ(plan.pieces_offset + 512 * kPieceBytes, plan.arenas[0].bytes);
  EXPECT_EQ(plan.arenas[0].device, -1);
  ExpectSound(g, plan);
}

// A batch copies at once what submissions one after the other would copy in order: bytes that one is done with are not
// free for the other. (Nobody reads these, so they are copied only where nobody asks.)
TEST(Gather, DeadTargetsInOneBatchShareNoBytes) {
  ModelBuilder g;
  const std::vector<int32_t> x = Inputs(g, 8, kSmall);
  for (int i = 0; i < 8; ++i) {
    g.Copy("c" + std::to_string(i), x[i], g.Scratch("z" + std::to_string(i), Extent(kSmall)));
  }
  const PlanOptions options = Devices(1);
  Draft draft = DraftAfter("Events", g.model, options, "EliminateCopies");
  const Plan plan = Lower(draft);
  ASSERT_EQ(Submissions(plan), "c0..c7 (8)");
  EXPECT_EQ(plan.arenas.back().bytes, 8 * 4 * kSmall);
  ExpectSound(g, plan);
}

TEST(Gather, IsShownInTextAndDot) {
  ModelBuilder g;
  Use(g, Inputs(g, 5, kSmall, kHost));
  const Plan plan = PlanOf(g);
  const std::string text = PrintText(plan, g.model), dot = PrintDot(plan, g.model);
  EXPECT_NE(text.find("host step 0 batch 0"), std::string::npos) << text;
  EXPECT_NE(text.find("host step 4: node 4, after host steps -, events -, joins the one before"), std::string::npos)
      << text;
  EXPECT_NE(text.find("segment 0 batch 5"), std::string::npos) << text;
  EXPECT_NE(text.find("320 bytes a slot to list the copies of batches"), std::string::npos) << text;
  EXPECT_NE(dot.find("subgraph cluster_batch_5 {"), std::string::npos) << dot;
}

}  // namespace
}  // namespace penstock::graph::batch_copies_test
