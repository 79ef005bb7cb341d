// A driver in front of another, which it hands every call: for tests that change one of them.
//
// Threads: those of the driver behind.
#pragma once

#include <memory>
#include <utility>

#include "src/driver/driver.h"

namespace penstock::driver {

class ForwardingDriver : public Driver {
 public:
  explicit ForwardingDriver(std::unique_ptr<Driver> behind) : behind_(std::move(behind)) {}

  int device_count() const override { return behind_->device_count(); }
  const DeviceInfo& device(int device) const override { return behind_->device(device); }
  int MakeCurrent(int device) override { return behind_->MakeCurrent(device); }
  void RestoreCurrent(int token) override { behind_->RestoreCurrent(token); }
  bool notifies_completion() const override { return behind_->notifies_completion(); }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override {
    return behind_->CreateStream(device, priority);
  }
  void DestroyStream(Stream stream) override { behind_->DestroyStream(stream); }
  void* NativeStream(Stream stream) const override { return behind_->NativeStream(stream); }
  absl::StatusOr<Event> CreateEvent(int device, bool timing) override { return behind_->CreateEvent(device, timing); }
  void DestroyEvent(Event event) override { behind_->DestroyEvent(event); }
  absl::Status Record(Event event, Stream stream) override { return behind_->Record(event, stream); }
  absl::Status Wait(Stream stream, Event event) override { return behind_->Wait(stream, event); }
  absl::StatusOr<int> DeviceOfNative(void* stream) override { return behind_->DeviceOfNative(stream); }
  absl::Status RecordOnNative(Event event, void* stream) override { return behind_->RecordOnNative(event, stream); }
  absl::Status MakeNativeWait(void* stream, Event event) override { return behind_->MakeNativeWait(stream, event); }
  absl::StatusOr<bool> Query(Event event) override { return behind_->Query(event); }
  absl::StatusOr<double> Elapsed(Event begin, Event end) override { return behind_->Elapsed(begin, end); }

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override {
    return behind_->AllocateDevice(device, bytes);
  }
  void FreeDevice(int device, void* memory) override { behind_->FreeDevice(device, memory); }
  int64_t AllocatedOn(int device) const override { return behind_->AllocatedOn(device); }
  bool OpenLink(int device, int peer) override { return behind_->OpenLink(device, peer); }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override { return behind_->AllocatePinned(bytes); }
  void FreePinned(void* memory) override { behind_->FreePinned(memory); }
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override { return behind_->Inspect(memory); }

  absl::Status Copy(Stream stream, const CopyOp& op) override { return behind_->Copy(stream, op); }
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override { return behind_->CopyBatch(stream, op); }
  absl::Status Fill(Stream stream, const FillOp& op) override { return behind_->Fill(stream, op); }
  absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) override {
    return behind_->LoadKernel(device, source);
  }
  absl::StatusOr<ImageKernel> LoadImage(int device, std::string_view image, const char* symbol, bool awaits) override {
    return behind_->LoadImage(device, image, symbol, awaits);
  }
  absl::StatusOr<BlockSize> FindBlockSize(int device, const KernelCode& code, uint32_t shared_bytes) override {
    return behind_->FindBlockSize(device, code, shared_bytes);
  }
  absl::Status Launch(Stream stream, const KernelOp& op) override { return behind_->Launch(stream, op); }
  absl::StatusOr<LibraryCode> LoadHostcall(int device) override { return behind_->LoadHostcall(device); }
  absl::StatusOr<LibraryCode> LoadTimestamp(int device) override { return behind_->LoadTimestamp(device); }
  absl::Status LaunchContext(Stream stream, OpTag tag, const UseSource& uses) override {
    return behind_->LaunchContext(stream, tag, uses);
  }

  absl::StatusOr<Graph> CreateGraph(int device) override { return behind_->CreateGraph(device); }
  void DestroyGraph(Graph graph) override { behind_->DestroyGraph(graph); }
  absl::StatusOr<int32_t> AddHost(Graph graph, std::span<const int32_t> after, const HostCall& call) override {
    return behind_->AddHost(graph, after, call);
  }
  void* NativeGraph(Graph graph) override { return behind_->NativeGraph(graph); }
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                  NodePlace place) override {
    return behind_->AddNode(graph, after, op, place);
  }
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override { return behind_->Instantiate(graph); }
  void DestroyExec(GraphExec exec) override { behind_->DestroyExec(exec); }
  absl::Status Upload(GraphExec exec, Stream stream) override { return behind_->Upload(exec, stream); }
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override { return behind_->LaunchGraph(exec, stream); }
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) override {
    return behind_->SetNode(exec, node, op);
  }
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) override {
    return behind_->EnableNode(exec, node, enabled);
  }
  absl::Status BeginCapture(Stream stream) override { return behind_->BeginCapture(stream); }
  absl::StatusOr<Graph> EndCapture(Stream stream) override { return behind_->EndCapture(stream); }
  absl::StatusOr<int32_t> CountNodes(Graph graph) override { return behind_->CountNodes(graph); }
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override {
    return behind_->AddChild(graph, after, child);
  }
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child) override {
    return behind_->SetChild(exec, node, child);
  }
  absl::StatusOr<ConditionalHandle> CreateConditional(Graph graph) override {
    return behind_->CreateConditional(graph);
  }
  absl::StatusOr<ConditionalNode> AddConditional(Graph graph, std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies) override {
    return behind_->AddConditional(graph, after, handle, kind, bodies);
  }
  absl::StatusOr<GraphExec> BodyOf(GraphExec exec, Graph body) override { return behind_->BodyOf(exec, body); }
  absl::StatusOr<NodeSwitch> AddSwitch(Graph graph, int32_t node, Alternative alternative) override {
    return behind_->AddSwitch(graph, node, alternative);
  }
  absl::StatusOr<LoopKernels> LoadLoopKernels(int device) override { return behind_->LoadLoopKernels(device); }

 private:
  const std::unique_ptr<Driver> behind_;
};

}  // namespace penstock::driver
