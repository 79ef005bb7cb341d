#include "src/runtime/graph_exec/node_timestamps.h"

#include <limits>
#include <utility>

#include "penstock/status_macros.h"

namespace penstock::runtime {
namespace {

constexpr int kHighest = std::numeric_limits<int>::min();  // of priorities

}  // namespace

absl::StatusOr<std::unique_ptr<NodeTimestamps>> NodeTimestamps::Create(const Options& options) {
  const GraphProgram& replay = *options.replay;
  std::vector<size_t> begin;
  std::vector<int32_t> nodes;  // for each timestamp: its plan node
  for (const GraphNodeEntry& entry : replay.entries) nodes.push_back(entry.node);
  for (GraphId g = 0; g < replay.graphs(); ++g) {
    const EntryId first = replay.begin[g];
    for (EntryId e = first; e < replay.begin[g + 1]; ++e) {
      const auto preds = replay.preds[e];
      begin.push_back(preds.size() == 1 ? EndOf(first + preds.front()) : nodes.size());
      if (preds.size() != 1) nodes.push_back(replay.entries[e].node);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(const driver::LibraryCode code, options.driver->LoadTimestamp(options.device));
  PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock places,
                            options.pinned->Allocate(nodes.size() * sizeof(uint64_t), options.pinned_node));
  return std::unique_ptr<NodeTimestamps>(new NodeTimestamps(options, code, nodes, std::move(begin), std::move(places)));
}

NodeTimestamps::NodeTimestamps(const Options& options, const driver::LibraryCode& code,
                               const std::vector<int32_t>& nodes, std::vector<size_t> begin, memory::PinnedBlock places)
    : driver_(*options.driver),
      regions_(*options.regions),
      begin_(std::move(begin)),
      first_begin_(options.replay->entries.size()),
      memory_(std::move(places)),
      timestamps_(nodes.size()) {
  for (size_t i = 0; i < timestamps_.size(); ++i) {
    timestamps_[i].Make(code, static_cast<uint64_t*>(memory_.data()) + i, {options.fault, nodes[i]});
  }
  Forget();
}

absl::StatusOr<bool> NodeTimestamps::AddBegin(int32_t entry, driver::Graph to, std::vector<int32_t>& after) const {
  const size_t begin = begin_[entry];
  if (begin < first_begin_) return false;
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t number, driver_.AddNode(to, after, &timestamps_[begin].op, kHighest));
  after.assign(1, number);
  return true;
}

absl::StatusOr<int32_t> NodeTimestamps::AddEnd(int32_t entry, driver::Graph to, std::span<const int32_t> ends) const {
  return driver_.AddNode(to, ends, &timestamps_[EndOf(entry)].op, kHighest);
}

NodeTimestamps::Times NodeTimestamps::Of(int32_t entry) const {
  return {timestamps_[begin_[entry]].time(), timestamps_[EndOf(entry)].time()};
}

void NodeTimestamps::Forget() {
  for (const TimestampOp& timestamp : timestamps_) timestamp.Forget();
}

}  // namespace penstock::runtime
