// CallLog: a compact record of each call through the driver interface, with counts by kind.
//
// Threads: not thread-safe; CallRecorder locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::driver::checked {

enum class CallKind : uint8_t {
  kCreateStream,
  kDestroyStream,
  kCreateEvent,
  kDestroyEvent,
  kRecord,
  kWait,
  kQuery,
  kElapsed,
  kAllocateDevice,
  kFreeDevice,
  kAllocatePinned,
  kFreePinned,
  kInspect,
  kCopy,
  kCopyBatch,
  kFill,
  kLoadKernel,
  kLaunch,
  kExternal,
  kCreateGraph,
  kDestroyGraph,
  kAddNode,
  kInstantiate,
  kDestroyExec,
  kUpload,
  kLaunchGraph,
  kSetNode,
  kEnableNode,
  kBeginCapture,
  kEndCapture,
  kCountNodes,
  kAddChild,
  kSetChild,
  kCreateConditional,
  kAddConditional,
  kBodyOf,
  kAddSwitch,
  kFindBlockSize
};
inline constexpr size_t kCallKinds = 38;
const char* NameOf(CallKind kind);

// Streams, events, graphs and execs are numbered from 1 in order of creation; 0: none. `node` is the plan's,
// `graph_node` the graph's. `bytes` is set for copies, batches, fills and allocations; 0 if they overflow. For a batch
// that is a graph node it is the declared size.
struct Call {
  CallKind kind = CallKind::kQuery;
  int16_t device = -1;
  int32_t node = -1;
  uint32_t stream = 0, event = 0;
  uint64_t bytes = 0;
  uint32_t graph = 0, exec = 0;
  int32_t graph_node = -1;
  uint32_t child = 0;  // also a graph's number
};

class CallLog {
 public:
  using Counts = std::array<int64_t, kCallKinds>;

  // Always counts; keeps the record only while `keep` is set.
  void Add(const Call& call);
  void set_keep(bool keep) { keep_ = keep; }
  int64_t count(CallKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  const Counts& counts() const { return counts_; }
  int64_t total() const { return total_; }
  const std::vector<Call>& calls() const { return calls_; }

 private:
  bool keep_ = false;
  int64_t total_ = 0;
  Counts counts_{};
  std::vector<Call> calls_;
};

// "Copy stream 3 device 0 node 7 4096 bytes".
std::string TextOf(const Call& call);

}  // namespace penstock::driver::checked
