// Which ranges of a schedule are split, and that parts keep lanes whole and in order and know what they wait for.
#include "src/runtime/program/partition.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/environment.h"

namespace penstock::runtime::partition_test {
namespace {

using Op = ExecCommand::Op;

Table<LaneId, graph::Lane> Lanes(int count, int devices = 1) {
  Table<LaneId, graph::Lane> lanes(static_cast<size_t>(count));
  for (int l = 0; l < count; ++l) lanes[static_cast<size_t>(l)].device = l % devices;
  return lanes;
}

// Partitions commands that form one segment.
std::vector<LanePartition> PartitionsOf(const Table<CommandId, ExecCommand>& commands,
                                        const Table<LaneId, graph::Lane>& lanes,
                                        const Table<DeviceId, int>& submission_threads) {
  graph::Segment segment;
  segment.end = static_cast<int32_t>(commands.size());
  return MakePartitions(commands, {segment}, lanes, submission_threads);
}
ExecCommand Command(Op op, int32_t lane, int32_t index = 0) {
  return {.op = op, .lane = lane, .index = index, .node = -1};
}

// So many kernels, in turn on the lanes.
Table<CommandId, ExecCommand> Kernels(int count, int lanes) {
  Table<CommandId, ExecCommand> commands;
  for (int i = 0; i < count; ++i) commands.push_back(Command(Op::kKernel, i % lanes));
  return commands;
}

TEST(LanePartition, TakesWideRangesOfPlainCommandsOnly) {
  EXPECT_EQ(PartitionsOf(Kernels(64, 2), Lanes(2), {1}).size(), 1u);
  EXPECT_TRUE(PartitionsOf(Kernels(63, 2), Lanes(2), {1}).empty()) << "too short";
  EXPECT_TRUE(PartitionsOf(Kernels(64, 1), Lanes(2), {1}).empty()) << "one lane";
  EXPECT_TRUE(PartitionsOf(Kernels(64, 2), Lanes(2), {0}).empty()) << "there are no submission threads";
  for (const Op op : {Op::kLaunch, Op::kHostcall, Op::kStateWait, Op::kStateWrite, Op::kStateDone, Op::kGraph}) {
    Table<CommandId, ExecCommand> commands = Kernels(230, 3);
    commands[63].op = commands[130].op = op;
    const std::vector<LanePartition> partitions = PartitionsOf(commands, Lanes(3), {2});
    ASSERT_EQ(partitions.size(), 2u);
    EXPECT_EQ(partitions[0].begin, 64);
    EXPECT_EQ(partitions[0].end, 130);
    EXPECT_EQ(partitions[1].begin, 131);
    EXPECT_EQ(partitions[1].end, 230);
  }
}

// They do nothing in a run without predecessors, and others submit the range in order.
TEST(LanePartition, LeavesWaitsForWhatALaunchNamesOutOfItsParts) {
  Table<CommandId, ExecCommand> commands = Kernels(130, 2);
  for (int i = 0; i < 67; ++i) commands[static_cast<size_t>(i)].op = Op::kWaitExternal;
  EXPECT_TRUE(PartitionsOf(commands, Lanes(2), {1}).empty()) << "63 commands";
  commands = Kernels(130, 2);
  for (int i = 20; i < 40; ++i) commands[static_cast<size_t>(i)].op = Op::kWaitExternal;
  const std::vector<LanePartition> partitions = PartitionsOf(commands, Lanes(2), {1});
  ASSERT_EQ(partitions.size(), 1u);
  EXPECT_TRUE(partitions[0].awaits_external);
  EXPECT_EQ(partitions[0].end, 130);
  EXPECT_EQ(partitions[0].commands.size(), 110u);
  for (const PartCommand& c : partitions[0].commands) EXPECT_FALSE(c.command >= 20 && c.command < 40) << c.command;
  EXPECT_FALSE(PartitionsOf(Kernels(130, 2), Lanes(2), {1}).at(0).awaits_external);
}

TEST(LanePartition, LeavesAloneWhatRecordsAnEventThatWasRecordedBefore) {
  Table<CommandId, ExecCommand> commands = Kernels(100, 2);
  commands[10] = Command(Op::kRecord, 0, 5);
  EXPECT_EQ(PartitionsOf(commands, Lanes(2), {1}).size(), 1u);
  commands[90] = Command(Op::kRecord, 1, 5);
  EXPECT_TRUE(PartitionsOf(commands, Lanes(2), {1}).empty());
  commands[50].op = Op::kLaunch;  // between them
  commands.insert(commands.end(), 80, Command(Op::kKernel, 0));
  EXPECT_TRUE(PartitionsOf(commands, Lanes(2), {1}).empty()) << "the first may still be waited for";
}

TEST(LanePartition, MakesAPartForEachLaneUpToFourForEachThreadUnlessFewerAreNoLonger) {
  const auto parts = [](int lanes, int submission_threads) {
    return PartitionsOf(Kernels(lanes * 40, lanes), Lanes(lanes), {submission_threads}).at(0).parts();
  };
  EXPECT_EQ(parts(2, 1), 2);
  EXPECT_EQ(parts(4, 3), 4);
  EXPECT_EQ(parts(16, 7), 16);
  EXPECT_EQ(parts(16, 1), 8);
  EXPECT_EQ(parts(20, 1), 7) << "the longest has 3 lanes with 8 parts, too";
}

TEST(LanePartition, KeepsThePartsOfADeviceTogether) {
  const LanePartition split = PartitionsOf(Kernels(400, 8), Lanes(8, 2), {1, 3}).at(0);
  ASSERT_EQ(split.groups.size(), 2u);
  EXPECT_EQ(split.groups[0].last - split.groups[0].first, 4);
  EXPECT_EQ(split.groups[1].last - split.groups[1].first, 4);
  for (const LanePartition::Group& group : split.groups) {
    for (int32_t p = group.first; p < group.last; ++p) {
      for (const PartCommand& c : split.part(p)) EXPECT_EQ(c.command % 8 % 2, group.device);
    }
  }
}

// Each command is in the part of its lane once, in order; a wait names the record of its event, if that is in another
// part of the range.
TEST(LanePartition, OfRandomSchedulesKeepsLanesWholeAndKnowsItsWaits) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<int32_t>(random() % n); };
  int split_ranges = 0, crossing = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int lanes = 2 + below(12), devices = 1 + below(3);
    Table<CommandId, ExecCommand> commands;
    std::map<int32_t, int32_t> record;  // event -> command
    for (int i = 0; i < 300; ++i) {
      const int32_t lane = below(static_cast<size_t>(lanes));
      const int what = below(20);
      if (what < 6) {
        const auto event = static_cast<int32_t>(record.size());
        record[event] = static_cast<int32_t>(commands.size());
        commands.push_back(Command(Op::kRecord, lane, event));
      } else if (what < 12 && !record.empty()) {
        commands.push_back(Command(Op::kWait, lane, below(record.size())));
      } else {
        commands.push_back(Command(what == 19 && below(6) == 0 ? Op::kLaunch : Op::kKernel, lane));
      }
    }
    Table<DeviceId, int> submission_threads(static_cast<size_t>(devices));
    for (int& count : submission_threads) count = below(9);
    for (const LanePartition& split : PartitionsOf(commands, Lanes(lanes, devices), submission_threads)) {
      ++split_ranges;
      std::map<int32_t, int32_t> part_of_lane, seen;
      for (int32_t p = 0; p < split.parts(); ++p) {
        int32_t before = -1;
        for (const PartCommand& c : split.part(p)) {
          const ExecCommand& of = commands[static_cast<size_t>(c.command)];
          EXPECT_GT(c.command, before);
          before = c.command;
          ++seen[c.command];
          EXPECT_EQ(part_of_lane.try_emplace(of.lane, p).first->second, p) << "a lane in two parts";
        }
      }
      for (int32_t c = split.begin; c < split.end; ++c) EXPECT_EQ(seen[c], 1);
      EXPECT_EQ(static_cast<int32_t>(seen.size()), split.end - split.begin);
      for (int32_t p = 0; p < split.parts(); ++p) {
        for (const PartCommand& c : split.part(p)) {
          const ExecCommand& of = commands[static_cast<size_t>(c.command)];
          const int32_t by = of.op == Op::kWait ? record[of.index] : -1;
          const bool elsewhere = by >= split.begin && part_of_lane[commands[static_cast<size_t>(by)].lane] != p;
          ASSERT_EQ(c.after_part >= 0, elsewhere);
          if (!elsewhere) continue;
          ++crossing;
          EXPECT_EQ(split.part(c.after_part)[static_cast<size_t>(c.after)].command, by);
        }
      }
    }
  }
  EXPECT_GT(split_ranges, 100);
  EXPECT_GT(crossing, 1000);
}

}  // namespace
}  // namespace penstock::runtime::partition_test
