#include "src/runtime/graph_exec/node_timestamps.h"

#include <limits>
#include <optional>
#include <utility>

#include "penstock/status_macros.h"

namespace penstock::runtime {
namespace {

constexpr int kHighest = std::numeric_limits<int>::min();  // of priorities

}  // namespace

absl::StatusOr<std::unique_ptr<NodeTimestamps>> NodeTimestamps::Create(const Options& options) {
  const GraphProgram& replay = options.compiled->program().replay;
  const auto device_of = [&](EntryId e) { return options.compiled->local_device_of(replay.entries[e].node); };
  std::vector<size_t> begin;
  std::vector<NodeId> nodes;  // for each timestamp: its plan node
  for (const GraphNodeEntry& entry : replay.entries) nodes.push_back(entry.node);
  for (GraphId g = 0; g < replay.graphs(); ++g) {
    const EntryId first = replay.begin[g];
    for (EntryId e = first; e < replay.begin[g + 1]; ++e) {
      const auto preds = replay.preds[e];
      const bool follows = preds.size() == 1 && device_of(first + preds.front()) == device_of(e);
      begin.push_back(follows ? EndOf(first + preds.front()) : nodes.size());
      if (!follows) nodes.push_back(replay.entries[e].node);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock places,
                            options.pinned->Allocate(nodes.size() * sizeof(uint64_t), options.pinned_node));
  std::unique_ptr<NodeTimestamps> made(new NodeTimestamps(options, std::move(begin), std::move(places)));
  PENSTOCK_RETURN_IF_ERROR(made->Make(options, nodes));
  return made;
}

NodeTimestamps::NodeTimestamps(const Options& options, std::vector<size_t> begin, memory::PinnedBlock places)
    : driver_(options.compiled->driver()),
      regions_(*options.regions),
      begin_(std::move(begin)),
      first_begin_(options.compiled->program().replay.entries.size()),
      memory_(std::move(places)) {}

absl::Status NodeTimestamps::Make(const Options& options, const std::vector<NodeId>& nodes) {
  std::vector<std::optional<driver::LibraryCode>> codes(static_cast<size_t>(driver_.device_count()));
  timestamps_ = std::vector<TimestampOp>(nodes.size());
  for (size_t i = 0; i < timestamps_.size(); ++i) {
    const int device = options.compiled->local_device_of(nodes[i]);
    std::optional<driver::LibraryCode>& code = codes[static_cast<size_t>(device)];
    if (!code) {
      PENSTOCK_ASSIGN_OR_RETURN(code, driver_.LoadTimestamp(device));
    }
    timestamps_[i].Make(*code, static_cast<uint64_t*>(memory_.data()) + i, {options.fault, nodes[i]});
  }
  Forget();
  return absl::OkStatus();
}

absl::StatusOr<bool> NodeTimestamps::AddBegin(int32_t entry, driver::Graph to, std::vector<int32_t>& after,
                                              int device) const {
  const size_t begin = begin_[entry];
  if (begin < first_begin_) return false;
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t number, Add(begin, to, after, device));
  after.assign(1, number);
  return true;
}

absl::StatusOr<int32_t> NodeTimestamps::AddEnd(int32_t entry, driver::Graph to, std::span<const int32_t> ends,
                                               int device) const {
  return Add(EndOf(entry), to, ends, device);
}

absl::StatusOr<int32_t> NodeTimestamps::Add(size_t timestamp, driver::Graph to, std::span<const int32_t> after,
                                            int device) const {
  return driver_.AddNode(to, after, &timestamps_[timestamp].op, {.priority = kHighest, .device = device});
}

NodeTimestamps::Times NodeTimestamps::Of(int32_t entry) const {
  return {timestamps_[begin_[entry]].time(), timestamps_[EndOf(entry)].time()};
}

void NodeTimestamps::Forget() {
  for (const TimestampOp& timestamp : timestamps_) timestamp.Forget();
}

}  // namespace penstock::runtime
