// Finds the commands of a schedule that are partitioned, and cuts them into parts. See partition.h.
#include "src/runtime/program/partition.h"

#include <algorithm>
#include <utility>

#include "src/runtime/program/tuning.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

bool IsPlain(Op op) {
  switch (op) {
    case Op::kCopy:
    case Op::kBatch:
    case Op::kFill:
    case Op::kKernel:
    case Op::kRecord:
    case Op::kWait: return true;
    default: return false;
  }
}

class Cutter {
 public:
  Cutter(const Table<CommandId, ExecCommand>& commands, const Table<LaneId, graph::Lane>& lanes,
         const Table<DeviceId, int>& submission_threads)
      : commands_(commands), lanes_(lanes), submission_threads_(submission_threads), part_of_(lanes.size(), -1) {
    int32_t events = 0;
    for (const ExecCommand& c : commands) events = std::max(events, c.op == Op::kRecord ? c.index + 1 : 0);
    record_.resize(static_cast<size_t>(events), {-1, 0});
  }

  std::vector<LanePartition> Cut(const Table<SegmentId, graph::Segment>& segments) {
    Table<EventId, bool> recorded(record_.size());
    for (const graph::Segment& segment : segments) {
      for (int32_t begin = segment.begin; begin < segment.end;) {
        int32_t end = begin;
        while (end < segment.end && (IsPlain(At(end).op) || At(end).op == Op::kWaitExternal)) ++end;
        Consider(begin, end, recorded);
        for (int32_t c = begin; c < end; ++c) {
          if (At(c).op == Op::kRecord) recorded[At(c).index] = true;
        }
        begin = end + 1;  // the command, which is not plain, records nothing
      }
    }
    return std::move(splits_);
  }

 private:
  const ExecCommand& At(CommandId c) const { return commands_[c]; }

  // `recorded`: the events recorded earlier, and in the range as far as it has been scanned.
  void Consider(int32_t begin, int32_t end, Table<EventId, bool>& recorded) {
    int32_t plain = 0;
    for (int32_t c = begin; c < end; ++c) plain += IsPlain(At(c).op) ? 1 : 0;
    if (plain < graph::kPartitionFrom) return;
    for (int32_t c = begin; c < end; ++c) {
      if (At(c).op != Op::kRecord) continue;
      const EventId event = At(c).index;
      if (recorded[event]) return;
      recorded[event] = true;
    }
    LanePartition split;
    split.begin = begin;
    split.end = end;
    split.awaits_external = plain < end - begin;
    AssignLanes(split);
    if (split.parts() < 2) return;
    FillParts(split);
    splits_.push_back(std::move(split));
  }

  // Distributes each device's lanes over parts, one each if there are enough, but over no more than make the longest
  // part shorter: 16 equal lanes become 8 parts of 2 even if 9 parts are possible.
  void AssignLanes(LanePartition& split) {
    Table<LaneId, int32_t> load(lanes_.size());  // commands
    for (int32_t c = split.begin; c < split.end; ++c) load[At(c).lane] += IsPlain(At(c).op) ? 1 : 0;
    std::fill(part_of_.begin(), part_of_.end(), -1);
    int32_t first = 0;
    for (const DeviceId d : submission_threads_.ids()) {
      std::vector<LaneId> lanes;
      for (const LaneId l : lanes_.ids()) {
        if (load[l] > 0 && lanes_[l].device == d) lanes.push_back(l);
      }
      if (lanes.empty()) continue;
      std::sort(lanes.begin(), lanes.end(), [&](LaneId a, LaneId b) {
        const int32_t of_a = load[a], of_b = load[b];
        return of_a != of_b ? of_a > of_b : a < b;
      });
      const int32_t threads = submission_threads_[d] + 1;
      int32_t parts = std::min(static_cast<int32_t>(lanes.size()), tuning::kPartsForEachThread * threads);
      const int32_t longest = Longest(Assign(lanes, load, parts, first));
      while (parts > 1 && Longest(Assign(lanes, load, parts - 1, first)) <= longest) --parts;
      for (const int32_t commands : Assign(lanes, load, parts, first)) {
        split.part_begin.push_back(split.part_begin.back() + commands);
      }
      split.groups.push_back({d, first, first + parts});
      first += parts;
    }
  }

  // Assigns one lane after the other to the shortest of the parts from `first` on. Returns the lengths of the parts.
  std::vector<int32_t> Assign(const std::vector<LaneId>& lanes, const Table<LaneId, int32_t>& load, int32_t parts,
                              int32_t first) {
    std::vector<int32_t> of_part(static_cast<size_t>(parts));
    for (const LaneId lane : lanes) {
      const auto least = std::min_element(of_part.begin(), of_part.end());
      *least += load[lane];
      part_of_[lane] = first + static_cast<int32_t>(least - of_part.begin());
    }
    return of_part;
  }
  static int32_t Longest(const std::vector<int32_t>& parts) { return *std::max_element(parts.begin(), parts.end()); }

  void FillParts(LanePartition& split) {
    split.commands.resize(static_cast<size_t>(split.part_begin.back()));
    std::vector<int32_t> filled(static_cast<size_t>(split.parts()));
    for (int32_t c = split.begin; c < split.end; ++c) {
      if (!IsPlain(At(c).op)) continue;
      const int32_t part = part_of_[At(c).lane];
      const int32_t place = filled[part]++;
      PartCommand command{c};
      const EventId event = At(c).index;
      if (At(c).op == Op::kRecord) record_[event] = {part, place};
      if (At(c).op == Op::kWait) {
        const auto [by, at] = record_[event];
        if (by != part) command.after_part = by, command.after = at;
      }
      const int32_t begin = split.part_begin[part];
      split.commands[begin + place] = command;
    }
    for (int32_t c = split.begin; c < split.end; ++c) {
      if (At(c).op == Op::kRecord) record_[At(c).index] = {-1, 0};
    }
  }

  const Table<CommandId, ExecCommand>& commands_;
  const Table<LaneId, graph::Lane>& lanes_;
  const Table<DeviceId, int>& submission_threads_;
  Table<LaneId, int32_t> part_of_;  // in the current partition
  Table<EventId, std::pair<int32_t, int32_t>> record_;  // part and index, if recorded in the current partition
  std::vector<LanePartition> splits_;
};

}  // namespace

std::vector<LanePartition> MakePartitions(const Table<CommandId, ExecCommand>& commands,
                                          const Table<SegmentId, graph::Segment>& segments,
                                          const Table<LaneId, graph::Lane>& lanes,
                                          const Table<DeviceId, int>& submission_threads) {
  if (std::all_of(submission_threads.begin(), submission_threads.end(), [](int count) { return count == 0; }))
    return {};
  return Cutter(commands, lanes, submission_threads).Cut(segments);
}

}  // namespace penstock::runtime
