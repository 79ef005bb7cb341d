#include "tests/conformance/driver/driver_conformance.h"

#include <chrono>
#include <new>
#include <random>

#include "src/driver/checked/checked_driver.h"
#include "tests/support/noise.h"

namespace penstock::driver::conformance {

// Makes a device current for a scope.
class DriverConformance::Current {
 public:
  Current(Driver& driver, int device) : driver_(driver), token_(driver.MakeCurrent(device)) {}
  ~Current() { driver_.RestoreCurrent(token_); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  Driver& driver_;
  const int token_;
};

void DriverConformance::SetUp() {
  auto made = GetParam().create(&event_count_);
  if (!made.ok()) {
    if (RequiredDevices() >= 1) FAIL() << made.status();
    GTEST_SKIP() << made.status();
  }
  driver_ = *std::move(made);
  if (GetParam().checked) {
    witness_ = std::make_shared<checked::CallRecorder>();
    driver_ = checked::CreateCheckedDriver(std::move(driver_), witness_);
  }
  outer_ = driver_->MakeCurrent(0);
  stream_ = NewStream();
  for (int device = 0; device < driver_->device_count(); ++device) {
    for (const Probe* probe : {&probes().step, &probes().hold, &probes().note}) KernelOf(*probe, device);
  }
}

void DriverConformance::TearDown() {
  if (!driver_) return;
  OpenLatches();
  for (const auto& [device, stream] : streams_) EXPECT_TRUE(Finish(stream, device));
  for (const auto& [device, exec] : execs_) {
    Current current(*driver_, device);
    driver_->DestroyExec(exec);
  }
  for (const auto& [device, graph] : graphs_) {
    Current current(*driver_, device);
    driver_->DestroyGraph(graph);
  }
  for (const auto& [device, stream] : streams_) {
    Current current(*driver_, device);
    driver_->DestroyStream(stream);
  }
  for (const auto& [device, event] : events_) {
    Current current(*driver_, device);
    driver_->DestroyEvent(event);
  }
  for (const auto& [device, memory] : device_memory_) {
    Current current(*driver_, device);
    driver_->FreeDevice(device, memory);
  }
  for (void* memory : pinned_memory_) driver_->FreePinned(memory);
  driver_->RestoreCurrent(outer_);
  driver_.reset();
  if (!witness_) return;
  const std::vector<std::string> violations = witness_->violations();
  EXPECT_EQ(!violations.empty(), breaks_rules_) << testing::PrintToString(violations);
}

void* DriverConformance::DeviceBytes(size_t bytes, int device) {
  Current current(*driver_, device);
  const auto memory = driver_->AllocateDevice(device, bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  if (!memory.ok()) return nullptr;
  device_memory_.emplace_back(device, *memory);
  return *memory;
}

void* DriverConformance::PinnedBytes(size_t bytes) {
  const auto memory = driver_->AllocatePinned(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  if (!memory.ok()) return nullptr;
  pinned_memory_.push_back(*memory);
  return *memory;
}

std::byte* DriverConformance::PinnedNoise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::byte* const memory = Pinned<std::byte>(bytes);
  FillWithNoise({memory, bytes}, random);
  return memory;
}

Stream DriverConformance::NewStream(int device, int priority) {
  Current current(*driver_, device);
  const auto stream = driver_->CreateStream(device, priority);
  EXPECT_TRUE(stream.ok()) << stream.status();
  if (!stream.ok()) return {};
  streams_.emplace_back(device, *stream);
  return *stream;
}

Event DriverConformance::NewEvent(int device, bool timing) {
  Current current(*driver_, device);
  const auto event = driver_->CreateEvent(device, timing);
  EXPECT_TRUE(event.ok()) << event.status();
  if (!event.ok()) return {};
  events_.emplace_back(device, *event);
  return *event;
}

Graph DriverConformance::NewGraph(int device) {
  Current current(*driver_, device);
  const auto graph = driver_->CreateGraph(device);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  graphs_.emplace_back(device, *graph);
  return *graph;
}

Graph DriverConformance::NewCapture(Stream stream, const std::function<absl::Status()>& submit) {
  EXPECT_OK(driver_->BeginCapture(stream));
  EXPECT_OK(submit());
  const auto graph = driver_->EndCapture(stream);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  graphs_.emplace_back(0, *graph);
  return *graph;
}

GraphExec DriverConformance::NewExec(Graph graph, int device) {
  Current current(*driver_, device);
  const auto exec = driver_->Instantiate(graph);
  EXPECT_TRUE(exec.ok()) << exec.status();
  if (!exec.ok()) return {};
  execs_.emplace_back(device, *exec);
  return *exec;
}

KernelLatch& DriverConformance::NewLatch() {
  latches_.push_back(new (Pinned<KernelLatch>(1)) KernelLatch);
  return *latches_.back();
}

void DriverConformance::OpenLatches() {
  for (KernelLatch* latch : latches_) Open(*latch);
}

const void* DriverConformance::KernelOf(const Probe& probe, int device) {
  Current current(*driver_, device);
  const auto kernel = driver_->LoadKernel(device, probe.cuda);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? kernel->kernel : nullptr;
}

KernelOp DriverConformance::OpOf(const Probe& probe, const PackedArgs& args, int64_t rows, int device) {
  KernelOp op = args.op();
  op.kernel = KernelOf(probe, device);
  op.range = probe.range;
  op.rows = rows;
  if (rows > 1) {
    op.block = {256, 1, 1};
    op.grid = {static_cast<uint32_t>((rows + 255) / 256), 1, 1};
  }
  return op;
}

absl::Status DriverConformance::Launch(Stream stream, const Probe& probe, const PackedArgs& args, int64_t rows,
                                       int device) {
  const KernelOp op = OpOf(probe, args, rows, device);
  Current current(*driver_, device);
  return driver_->Launch(stream, op);
}

absl::Status DriverConformance::Step(Stream stream, int32_t* data, int64_t n, int32_t k, int device) {
  PackedArgs args;
  args.Add(data).Add(n).Add(k);
  return Launch(stream, probes().step, args, n, device);
}

bool DriverConformance::Hold(Stream stream, KernelLatch& latch, int device) {
  PackedArgs args;
  args.Add(&latch);
  const absl::Status status = Launch(stream, probes().hold, args, 1, device);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() && AwaitStarted(latch);
}

absl::Status DriverConformance::Note(Stream stream, const KernelLatch& latch, int32_t* out, int device) {
  PackedArgs args;
  args.Add(&latch).Add(out);
  return Launch(stream, probes().note, args, 1, device);
}

bool DriverConformance::LetOthersRun(Stream stream, const KernelLatch& closed, int32_t* out, int device) {
  // A driver may take up the notes before what stood there first, or do both at once, but hardly every time.
  for (int i = 0; i < 16; ++i) {
    *out = 0;
    const absl::Status status = Note(stream, closed, out, device);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok() || !Finish(stream, device) || *out != kSawClosed) return false;
  }
  return true;
}

int32_t DriverConformance::AddProbe(Graph graph, const std::vector<int32_t>& after, const Probe& probe,
                                    const PackedArgs& args) {
  const KernelOp op = OpOf(probe, args);
  const absl::StatusOr<int32_t> node = driver_->AddNode(graph, after, &op, {});
  EXPECT_OK(node.status());
  return node.value_or(-1);
}

int32_t DriverConformance::AddStep(Graph graph, const std::vector<int32_t>& after, int32_t* number, int32_t k) {
  PackedArgs args;
  args.Add(number).Add(int64_t{1}).Add(k);
  return AddProbe(graph, after, probes().step, args);
}

ConditionalHandle DriverConformance::NewHandle(Graph graph) {
  const absl::StatusOr<ConditionalHandle> handle = driver_->CreateConditional(graph);
  EXPECT_OK(handle.status());
  return handle.value_or(ConditionalHandle{});
}

ConditionalNode DriverConformance::AddConditional(Graph graph, const std::vector<int32_t>& after,
                                                  ConditionalHandle handle, ConditionalKind kind, int32_t bodies) {
  absl::StatusOr<ConditionalNode> node = driver_->AddConditional(graph, after, handle, kind, bodies);
  EXPECT_OK(node.status());
  if (!node.ok()) return {.number = -1, .bodies = std::vector<Graph>(static_cast<size_t>(bodies))};
  EXPECT_EQ(node->bodies.size(), static_cast<size_t>(bodies));
  return *std::move(node);
}

absl::Status DriverConformance::Upload(Stream stream, void* device, const void* pinned, size_t bytes) {
  return driver_->Copy(stream, {.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned, .width = bytes});
}

absl::Status DriverConformance::Download(Stream stream, void* pinned, const void* device, size_t bytes) {
  return driver_->Copy(stream, {.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = bytes});
}

bool DriverConformance::Finish(Event event) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < until) {
    const uint64_t ticket = event_count_.ticket();
    const auto done = driver_->Query(event);
    EXPECT_TRUE(done.ok()) << done.status();
    if (!done.ok() || *done) return done.ok();
    // A driver that does not ring is looked at again every millisecond.
    const auto next_look = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    event_count_.Wait(ticket, driver_->notifies_completion() ? until : next_look);
  }
  return false;
}

bool DriverConformance::Finish(Stream stream, int device) {
  Current current(*driver_, device);
  const auto event = driver_->CreateEvent(device, false);
  EXPECT_TRUE(event.ok()) << event.status();
  if (!event.ok()) return false;
  const absl::Status recorded = driver_->Record(*event, stream);
  EXPECT_TRUE(recorded.ok()) << recorded;
  const bool finished = recorded.ok() && Finish(*event);
  driver_->DestroyEvent(*event);
  return finished;
}

std::vector<std::byte> DriverConformance::BytesOf(const void* device_memory, size_t bytes, int device) {
  std::byte* const staged = Pinned<std::byte>(bytes);
  const Stream stream = NewStream(device);
  {
    Current current(*driver_, device);
    EXPECT_TRUE(Download(stream, staged, device_memory, bytes).ok());
  }
  EXPECT_TRUE(Finish(stream, device));
  return {staged, staged + bytes};
}

}  // namespace penstock::driver::conformance
