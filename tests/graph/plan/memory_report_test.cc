// What a plan is said to take of memory, against the plan itself looked at node by node and byte by byte.
#include "graph/plan/memory_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/peak.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph::memory_report_test {
namespace {

constexpr int kNodes = 24, kSlots = 3;
const std::vector<std::string> kDevices = {"host:0", "host:1", "host:2"};

TEST(MemoryReports, OfRandomPlansTellWhatIsInThem) {
  const Seeds seeds = SeedsOf(0);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    const MemoryReport report = ReportMemory(p.plan, p.model(), kDevices, kSlots);
    ASSERT_EQ(report.arenas.size(), p.plan.arenas.size()) << Rerun(seed) << p.text();
    for (size_t a = 0; a < report.arenas.size(); ++a) {
      const Arena& arena = p.plan.arenas[a];
      const MemoryReport::Arena& told = report.arenas[a];
      ASSERT_EQ(told.where, arena.device < 0 ? "pinned" : "host:" + std::to_string(arena.device)) << Rerun(seed);
      ASSERT_EQ(told.slot_bytes, arena.bytes) << Rerun(seed) << p.text();
      ASSERT_EQ(told.all_bytes, kSlots * arena.bytes) << Rerun(seed) << p.text();
      ASSERT_EQ(told.peak_bytes, PeakOf(p.plan, arena.device)) << Rerun(seed) << p.text();
    }
  }
}

TEST(MemoryReports, NameTheLargestBuffersFirst) {
  ModelBuilder g;
  for (int i = 0; i < 10; ++i) g.For("k" + std::to_string(i), Out{g.Scratch("t" + std::to_string(i), 64 * (1 + i))});
  const int32_t pinned = g.Scratch("pinned", 64 * 8, kPinned), even = g.Scratch("even", 64 * 8);
  g.Host("h", Out{pinned});
  g.For("k", Out{even});
  const MemoryReport report = ReportMemory(PlanOf(g), g.model, kDevices, 1);
  std::string text;
  for (const MemoryReport::Piece& p : report.largest)
    text += p.name + " " + std::to_string(p.bytes) + " " + p.where + "; ";
  EXPECT_EQ(text,
            "t9 2560 host:0; t8 2304 host:0; even 2048 host:0; pinned 2048 pinned; t7 2048 host:0; t6 1792 host:0; "
            "t5 1536 host:0; t4 1280 host:0; ");
}

TEST(MemoryReports, NameScratchOnceHoweverManyNodesUseIt) {
  ModelBuilder g;
  const int32_t w = g.Scratch("w", 100), t = g.Scratch("t", 50);
  g.For("a", Temporary{w}, Out{t});
  g.For("b", Temporary{w}, Change{t});
  const MemoryReport report = ReportMemory(PlanOf(g), g.model, {"host:0"}, 1);
  ASSERT_EQ(report.largest.size(), 2u);
  EXPECT_EQ(report.largest[0].name, "w");
  EXPECT_EQ(report.largest[1].name, "t");
}

TEST(MemoryReports, AreTables) {
  ModelBuilder g("saxpy");
  const int32_t x = g.Input("x", 640), t = g.Scratch("t", 64);
  g.For("k", In{x}, Out{t});
  EXPECT_EQ(ReportMemory(PlanOf(g), g.model, kDevices, 3).Text(),
            "memory of graph 'saxpy', 3 slots, in bytes\n"
            "  where   a slot  all slots  most at once\n"
            "  pinned    2560       7680          2560\n"
            "  host:0    2816       8448          2816\n"
            "  largest  bytes   where\n"
            "  x         2560  pinned\n"
            "  x         2560  host:0\n"
            "  t          256  host:0\n");
}

TEST(MemoryReports, OfNothingSayNone) {
  EXPECT_EQ(ReportMemory(PlanOf(ModelBuilder()), ModelBuilder().model, kDevices, 1).Text(),
            "memory of graph 'g', 1 slot: none\n");
}

}  // namespace
}  // namespace penstock::graph::memory_report_test
