#include "src/runtime/graph_exec/region_timestamps.h"

#include <atomic>
#include <utility>

#include "penstock/detail/decision.h"

namespace penstock::runtime {
namespace {

// After a fatal error ended the run, work may still be running on a host device.
void Store(uint64_t& word, uint64_t time) { std::atomic_ref<uint64_t>(word).store(time, std::memory_order_relaxed); }

void RecordTime(void* const* argv, int64_t /*first*/, int64_t /*end*/) {
  const uint64_t now = detail::DeviceNanos();
  for (uint64_t& word : *static_cast<const std::span<uint64_t>*>(argv[0])) Store(word, now);
}

}  // namespace

RegionTimestamps::RegionTimestamps(const RegionEntry& region, memory::PinnedBlock memory, driver::RunFault* fault)
    : region_(region), memory_(std::move(memory)) {
  const graph::CsrRows& lists = region.schedule.tasks;
  if (lists.rows() == 0) {
    MakeRecordings(fault);
  } else {
    place_.resize(region.nodes.size());
    size_t place = 0;
    for (int32_t worker = 0; worker < lists.rows(); ++worker) {
      for (const int32_t task : lists[worker]) place_[static_cast<size_t>(task)] = place++;
    }
  }
  Forget();
}

// The end of a node and the beginning of the next one lie side by side.
void RegionTimestamps::MakeRecordings(driver::RunFault* fault) {
  const size_t nodes = region_.nodes.size();
  recordings_ = std::vector<Recording>(nodes + 1);
  for (size_t i = 0; i <= nodes; ++i) {
    Recording& made = recordings_[i];
    const size_t begin = i == 0 ? 0 : 2 * i - 1, end = i == nodes ? 2 * nodes : 2 * i + 1;
    made.words = {memory() + begin, end - begin};
    made.op.argv = &made.argv;
    made.op.argc = 1;
    made.op.args = static_cast<const std::byte*>(made.argv);
    made.op.args_size = sizeof(std::span<uint64_t>);
    made.op.range = &RecordTime;
    made.op.rows = 1;
    made.op.tag = {fault, region_.nodes[i == 0 ? 0 : i - 1].node};
    made.op.uses = &made;
  }
}

void RegionTimestamps::Recording::AppendUses(int32_t /*node*/, std::vector<driver::MemoryUse>& out) const {
  out.push_back({.data = words.data(), .width = words.size_bytes(), .writes = true});
}

std::vector<driver::NodeOp> RegionTimestamps::Among(std::span<const driver::NodeOp> ops) const {
  std::vector<driver::NodeOp> all{&recordings_[0].op};
  for (size_t i = 0; i < ops.size(); ++i) {
    all.push_back(ops[i]);
    all.push_back(&recordings_[i + 1].op);
  }
  return all;
}

std::vector<driver::RegionOp::Edge> RegionTimestamps::Edges() const {
  std::vector<driver::RegionOp::Edge> edges;
  for (int32_t i = 1; i <= 2 * static_cast<int32_t>(region_.nodes.size()); ++i) edges.push_back({i - 1, i});
  return edges;
}

NodeTimestamps::Times RegionTimestamps::Of(size_t node) const {
  const size_t at = 2 * (place_.empty() ? node : place_[node]);
  const auto load = [](uint64_t& word) { return std::atomic_ref<uint64_t>(word).load(std::memory_order_relaxed); };
  return {load(memory()[at]), load(memory()[at + 1])};
}

void RegionTimestamps::Forget() {
  for (size_t i = 0; i < 2 * region_.nodes.size(); ++i) Store(memory()[i], 0);
}

}  // namespace penstock::runtime
