#include "src/driver/host/host_driver.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/limits.h"
#include "src/driver/host/decide_kernels.h"
#include "src/driver/host/host_capture.h"
#include "src/driver/host/host_graph.h"
#include "src/driver/host/host_memory.h"
#include "src/driver/host/hostcall_kernel.h"
#include "src/driver/host/scheduler.h"
#include "src/driver/host/timestamp_kernel.h"
#include "src/driver/host/work_maker.h"

namespace penstock::driver::host {
namespace {

constexpr int64_t kMostMemory = int64_t{16} << 30;

absl::Status CallHost(void* host_call, void* const* /*argv*/) {
  const HostCall& of = *static_cast<const HostCall*>(host_call);
  of.call(of.context);
  return absl::OkStatus();
}

class HostDriver final : public Driver {
 public:
  HostDriver(int devices, int threads, int64_t memory_bytes, int64_t usable_memory, const HostDriverOptions& options)
      : notifies_(options.event_count != nullptr),
        pinned_(static_cast<size_t>(usable_memory)),
        links_(static_cast<size_t>(devices)),
        maker_(heaps_, pinned_, links_, threads),
        scheduler_(devices, threads, options.event_count, options.order_seed) {
    for (int i = 0; i < devices; ++i) {
      std::string name = absl::StrCat("host:", i);
      heaps_.push_back(std::make_unique<DeviceHeap>(name, memory_bytes));
      infos_.push_back({DeviceKind::kHost, std::move(name), absl::StrCat(threads, " CPU threads"),
                        heaps_.back()->capacity(), threads});
    }
  }

  int device_count() const override { return static_cast<int>(infos_.size()); }
  const DeviceInfo& device(int device) const override { return infos_[static_cast<size_t>(device)]; }
  int MakeCurrent(int /*device*/) override { return 0; }  // host devices can be used from any thread
  void RestoreCurrent(int /*token*/) override {}
  bool notifies_completion() const override { return notifies_; }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return scheduler_.CreateStream(device, priority);
  }
  void DestroyStream(Stream stream) override {
    captures_.Drop(stream);
    scheduler_.DestroyStream(stream);
  }
  void* NativeStream(Stream /*stream*/) const override { return nullptr; }

  absl::StatusOr<Event> CreateEvent(int device, bool timing) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return scheduler_.CreateEvent(device, timing);
  }
  void DestroyEvent(Event event) override { scheduler_.DestroyEvent(event); }
  absl::Status Record(Event event, Stream stream) override {
    PENSTOCK_RETURN_IF_ERROR(captures_.Refuse(stream, "Record"));
    return scheduler_.Record(event, stream);
  }
  absl::Status Wait(Stream stream, Event event) override {
    PENSTOCK_RETURN_IF_ERROR(captures_.Refuse(stream, "Wait"));
    return scheduler_.Wait(stream, event);
  }
  absl::StatusOr<bool> Query(Event event) override { return scheduler_.Query(event); }
  absl::StatusOr<double> Elapsed(Event begin, Event end) override { return scheduler_.Elapsed(begin, end); }

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override {
    if (absl::Status status = CheckDevice(device); !status.ok()) return status;
    return heap(device).Allocate(bytes);
  }
  void FreeDevice(int device, void* memory) override {
    [[maybe_unused]] const bool freed = memory == nullptr || (CheckDevice(device).ok() && heap(device).Free(memory));
    assert(freed && "FreeDevice of something that AllocateDevice did not return");
  }
  int64_t AllocatedOn(int device) const override { return heaps_[static_cast<size_t>(device)]->allocated(); }
  bool OpenLink(int device, int peer) override {
    links_.Open(device, peer);
    return true;
  }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override { return pinned_.Allocate(bytes); }
  void FreePinned(void* memory) override {
    [[maybe_unused]] const bool freed = memory == nullptr || pinned_.Free(memory);
    assert(freed && "FreePinned of something that AllocatePinned did not return");
  }
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override { return Submit(stream, op); }
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override { return Submit(stream, op); }
  absl::Status Fill(Stream stream, const FillOp& op) override { return Submit(stream, op); }
  absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& /*source*/) override {
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(device));
    return KernelCode{};
  }
  absl::Status Launch(Stream stream, const KernelOp& op) override { return Submit(stream, op); }
  absl::StatusOr<LibraryCode> LoadHostcall(int device) override {
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(device));
    return LibraryCode{.call = &Ask};
  }
  absl::StatusOr<LibraryCode> LoadTimestamp(int device) override {
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(device));
    return LibraryCode{.call = &Stamp};
  }

  absl::StatusOr<Graph> CreateGraph(int device) override { return graphs_.CreateGraph(device); }
  void DestroyGraph(Graph graph) override { graphs_.DestroyGraph(graph); }
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                  NodePlace place) override {
    return graphs_.AddNode(graph, after, op, place);
  }
  absl::StatusOr<int32_t> AddHost(Graph graph, std::span<const int32_t> after, const HostCall& call) override {
    const KernelOp op{.call = &CallHost, .callable = const_cast<HostCall*>(&call)};
    return graphs_.AddHost(graph, after, &op);
  }
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override { return graphs_.Instantiate(graph); }
  void DestroyExec(GraphExec exec) override { graphs_.DestroyExec(exec); }
  absl::Status Upload(GraphExec exec, Stream stream) override {
    PENSTOCK_RETURN_IF_ERROR(captures_.Refuse(stream, "Upload"));
    return graphs_.Upload(exec, stream);
  }
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override {
    PENSTOCK_RETURN_IF_ERROR(captures_.Refuse(stream, "LaunchGraph"));
    return graphs_.LaunchGraph(exec, stream);
  }
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) override {
    return graphs_.SetNode(exec, node, op);
  }
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) override {
    return graphs_.EnableNode(exec, node, enabled);
  }

  absl::Status BeginCapture(Stream stream) override { return captures_.Begin(stream); }
  absl::StatusOr<Graph> EndCapture(Stream stream) override {
    PENSTOCK_ASSIGN_OR_RETURN(GraphNodes nodes, captures_.End(stream));
    return graphs_.Adopt(std::move(nodes));
  }
  absl::StatusOr<int32_t> CountNodes(Graph graph) override { return graphs_.CountNodes(graph); }
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override {
    return graphs_.AddChild(graph, after, child);
  }
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child) override {
    return graphs_.SetChild(exec, node, child);
  }

  absl::StatusOr<ConditionalHandle> CreateConditional(Graph graph) override { return graphs_.CreateConditional(graph); }
  absl::StatusOr<ConditionalNode> AddConditional(Graph graph, std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies) override {
    return graphs_.AddConditional(graph, after, handle, kind, bodies);
  }
  absl::StatusOr<GraphExec> BodyOf(GraphExec exec, Graph body) override { return graphs_.BodyOf(exec, body); }
  absl::StatusOr<NodeSwitch> AddSwitch(Graph graph, int32_t node, Alternative) override {
    return graphs_.AddSwitch(graph, node);
  }
  absl::StatusOr<LoopKernels> LoadLoopKernels(int device) override {
    PENSTOCK_RETURN_IF_ERROR(CheckDevice(device));
    return LoopKernels{.decide = {.call = &DecideLoop}, .look = {.call = &LookAtStop}};
  }

 private:
  DeviceHeap& heap(int device) { return *heaps_[static_cast<size_t>(device)]; }
  int HolderOf(const void* memory) const;
  absl::Status CheckDevice(int device) const { return maker_.CheckDevice(device); }
  template <class Op>
  absl::Status Submit(Stream stream, const Op& op);

  // Constant after construction.
  const bool notifies_;
  std::vector<DeviceInfo> infos_;
  std::vector<std::unique_ptr<DeviceHeap>> heaps_;

  PinnedMemory pinned_;
  PeerLinks links_;
  const WorkMaker maker_;
  Scheduler scheduler_;  // its threads end before the memory is freed
  HostGraphs graphs_{maker_, scheduler_};
  HostCaptures captures_{scheduler_};
};

// The device whose address range contains the address, or -1.
int HostDriver::HolderOf(const void* memory) const {
  for (size_t i = 0; i < heaps_.size(); ++i) {
    if (heaps_[i]->Holds(memory)) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<PointerInfo> HostDriver::Inspect(const void* memory) {
  using Kind = PointerInfo::Kind;
  if (const int device = HolderOf(memory); device >= 0) {
    PENSTOCK_ASSIGN_OR_RETURN(const AddressRange block, heap(device).BlockOf(memory, 1));
    return PointerInfo{Kind::kDevice, device, block.begin, block.end};
  }
  const AddressRange block = pinned_.BlockOf(memory);
  if (block.begin == block.end) return PointerInfo{};
  return PointerInfo{Kind::kPinned, -1, block.begin, block.end};
}

template <class Op>
absl::Status HostDriver::Submit(Stream stream, const Op& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  PENSTOCK_ASSIGN_OR_RETURN(Work work, maker_.Make(device, op));
  if (!work.task) return absl::OkStatus();
  if (captures_.IsCapturing(stream)) return captures_.Keep(stream, &op);
  return scheduler_.Submit(stream, work.engine, std::move(work.task));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Driver>> CreateHostDriver(const HostDriverOptions& options) {
  const int devices = std::max(1, options.devices);
  const int64_t usable = base::MemoryOfProcess().bytes;
  const int threads =
      options.threads_per_device > 0 ? options.threads_per_device : std::max(2, base::UsableProcessors() / devices);
  const int64_t memory =
      options.memory_bytes > 0 ? std::min(options.memory_bytes, usable) : std::min(kMostMemory, usable / 2 / devices);
  try {
    return std::make_unique<HostDriver>(devices, threads, memory, usable, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", devices, " host devices of ", threads,
                                                     " threads for kernels each; ask for fewer"));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("the system refuses threads for ", devices, " host devices, ",
                                                     threads + 2, " threads each: ", error.what(),
                                                     "; ask for fewer devices or a smaller host_device_threads"));
  }
}

}  // namespace penstock::driver::host
