// What CreateCheckedDriver (checked_driver.h) makes. Each call is recorded, replaced by a planned fault if there
// is one, checked against the books and entered there, then passed to the driver below. StreamBook knows the order of
// work, MemoryRules the memory.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/mutex.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/checked/current_device.h"
#include "src/driver/checked/graph_book.h"
#include "src/driver/checked/memory_rules.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

class CheckedDriver final : public Driver {
 public:
  CheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<CallRecorder> witness)
      : inner_(std::move(inner)), witness_(std::move(witness)), memory_(*inner_, *witness_, book_) {}
  ~CheckedDriver() override;

  int device_count() const override { return inner_->device_count(); }
  const DeviceInfo& device(int device) const override { return inner_->device(device); }
  int MakeCurrent(int device) override { return current_.Enter(device, inner_->MakeCurrent(device)); }
  void RestoreCurrent(int token) override { inner_->RestoreCurrent(current_.Leave(token)); }
  bool notifies_completion() const override { return inner_->notifies_completion(); }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override;
  void DestroyStream(Stream stream) override;
  void* NativeStream(Stream stream) const override;
  absl::StatusOr<Event> CreateEvent(int device, bool timing) override;
  void DestroyEvent(Event event) override;
  absl::Status Record(Event event, Stream stream) override;
  absl::Status Wait(Stream stream, Event event) override;
  absl::Status WaitNative(Stream stream, void* event) override;
  absl::StatusOr<int> DeviceOfNative(void* stream) override { return inner_->DeviceOfNative(stream); }
  absl::Status RecordOnNative(Event event, void* stream) override;
  absl::Status MakeNativeWait(void* stream, Event event) override;
  absl::StatusOr<bool> Query(Event event) override;
  absl::StatusOr<double> Elapsed(Event begin, Event end) override;

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override;
  void FreeDevice(int device, void* memory) override;
  int64_t AllocatedOn(int device) const override { return inner_->AllocatedOn(device); }
  bool OpenLink(int device, int peer) override;
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory) override;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override;
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override;
  absl::Status Fill(Stream stream, const FillOp& op) override;
  absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) override;
  absl::StatusOr<ImageKernel> LoadImage(int device, std::string_view image, const char* symbol, bool awaits) override;
  absl::StatusOr<BlockSize> FindBlockSize(int device, const KernelCode& code, uint32_t shared_bytes) override;
  absl::Status Launch(Stream stream, const KernelOp& op) override;
  absl::StatusOr<LibraryCode> LoadHostcall(int device) override;
  absl::StatusOr<LibraryCode> LoadTimestamp(int device) override;
  absl::Status LaunchContext(Stream stream, OpTag tag, const UseSource& uses) override;

  // In checked_graphs.cc:
  absl::StatusOr<Graph> CreateGraph(int device) override;
  void DestroyGraph(Graph graph) override;
  absl::StatusOr<int32_t> AddHost(Graph graph, std::span<const int32_t> after, const HostCall& call) override;
  void* NativeGraph(Graph graph) override;
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                  NodePlace place) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override;
  void DestroyExec(GraphExec exec) override;
  absl::Status Upload(GraphExec exec, Stream stream) override;
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override;
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) override;
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) override;
  absl::Status BeginCapture(Stream stream) override;
  absl::StatusOr<Graph> EndCapture(Stream stream) override;
  absl::StatusOr<int32_t> CountNodes(Graph graph) override;
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override;
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child) override;

  // In checked_conditionals.cc:
  absl::StatusOr<ConditionalHandle> CreateConditional(Graph graph) override;
  absl::StatusOr<ConditionalNode> AddConditional(Graph graph, std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies) override;
  absl::StatusOr<GraphExec> BodyOf(GraphExec exec, Graph body) override;
  absl::StatusOr<NodeSwitch> AddSwitch(Graph graph, int32_t node, Alternative alternative) override;
  absl::StatusOr<LoopKernels> LoadLoopKernels(int device) override;

 private:
  // Counts the calls in progress, and reports violations at a call's end, when mu_ is no longer held.
  class Inside {
   public:
    explicit Inside(CheckedDriver& driver) : driver_(&driver) { ++driver.inside_; }
    Inside(Inside&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)) {}
    Inside& operator=(Inside&&) = delete;
    ~Inside() { Leave(); }
    void Leave() {
      if (driver_ == nullptr) return;
      --driver_->inside_;
      std::exchange(driver_, nullptr)->witness_->Report();
    }

   private:
    CheckedDriver* driver_;
  };

  // A graph or exec that one call has to itself, whose state it reads and writes without mu_.
  template <class State>
  class Held {
   public:
    Held(CheckedDriver& driver, State& state) : driver_(&driver), state_(&state) {}
    Held(Held&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)), state_(other.state_) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (driver_ == nullptr) return;
      base::MutexLock lock(driver_->mu_);
      state_->in_use = false;
    }
    State& operator*() const { return *state_; }
    State* operator->() const { return state_; }

   private:
    CheckedDriver* driver_;
    State* state_;
  };

  absl::StatusOr<Inside> Begin(const Call& call);
  Inside BeginVoid(const Call& call);
  absl::Status Violated(const char* rule, const std::string& what) { return witness_->Violated(rule, what); }
  absl::Status CheckCaller(const Call& call) ABSL_LOCKS_EXCLUDED(mu_);
  void StandStill();
  void Drain(std::chrono::steady_clock::time_point until);
  // For calls that no capture accepts, and for work that one does: `captured` tells whether the stream captures.
  absl::StatusOr<Stream> Submitting(Stream stream, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Stream> Submitting(Stream stream, const char* what, bool& captured) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepCaptured(Stream stream, const NodeOp& op) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<EventState*> Known(Event event, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckDevice(int device, const char* what);
  bool Forget(const void* memory, int device, const char* what);

  // Submits a copy, batch or fill: calls `call` on the driver below and counts it in `sum`.
  template <class Op>
  absl::Status Submit(CallKind kind, Stream stream, const Op& op, absl::Status (Driver::*call)(Stream, const Op&),
                      Totals::Sum Totals::* sum, size_t pieces);
  // Submits a kernel with these pointers, or a Launch callable: poisons the boxes it writes, unless captured, and
  // returns the stream below.
  absl::StatusOr<Stream> SubmitKernel(Stream stream, OpTag tag, const UseSource* uses,
                                      const std::vector<const void*>& pointers, bool& captured);
  void Poison(Stream inner, OpTag tag, const std::vector<Footprint>& boxes);

  // The state of a graph or exec, for this thread to use.
  // A child's device need not be current: it may be another than that of the graph which gets it.
  absl::StatusOr<Held<GraphState>> Hold(Graph graph, const char* what, bool must_be_current = true)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Held<ExecState>> Hold(GraphExec exec, const char* what) ABSL_LOCKS_EXCLUDED(mu_);
  template <class State, class Handle>
  absl::StatusOr<Held<State>> HoldAny(Handle handle, const char* what, bool must_be_current) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes a handle from the books before it is destroyed and returns the handle below; null if it must stay.
  template <class Handle>
  Handle Drop(Handle handle, const char* what) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether it may be destroyed, as to bodies; reports what is wrong.
  bool MayGo(Graph graph, const GraphState& state, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayGo(GraphExec exec, const ExecState& state, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // For a body: the exec it is in, for this thread to use too.
  absl::StatusOr<std::optional<Held<ExecState>>> HoldWhole(const ExecState& state, const char* what)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckNode(const ExecState& state, GraphExec exec, int32_t node, const char* what);
  absl::Status CheckAfter(const GraphState& state, Graph graph, std::span<const int32_t> after, const char* what);
  absl::StatusOr<int32_t> Added(GraphState& state, Graph graph, int32_t below, std::span<const int32_t> after,
                                GraphNode node, const char* what);
  // A capture taken from the books, and its stream below.
  struct Ended {
    Stream stream{};
    int device = 0;
    CaptureState capture{};
  };
  absl::StatusOr<Ended> TakeCapture(Stream stream, const absl::Status& failure) ABSL_LOCKS_EXCLUDED(mu_);
  // The stream below, if this thread may launch the exec on `stream`.
  absl::StatusOr<Stream> Submitting(const ExecState& state, GraphExec exec, Stream stream, const char* what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<Driver> inner_;
  const std::shared_ptr<CallRecorder> witness_;
  CurrentDevices current_;
  std::atomic<int> inside_{0};  // calls that are going on
  std::atomic<bool> dying_{false}, still_{false};  // a call has met a fatal error; what began before it is over

  mutable base::Mutex mu_;
  StreamBook book_ ABSL_GUARDED_BY(mu_);
  GraphBook graphs_ ABSL_GUARDED_BY(mu_);
  MemoryRules memory_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::driver::checked
