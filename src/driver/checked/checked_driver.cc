// All calls except those of graphs (checked_graphs.cc). The file is long because the interface has many calls, each
// with its own rules.
#include "src/driver/checked/checked_driver.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/user_code.h"
#include "src/driver/checked/checked_class.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::checked {
namespace {

constexpr std::chrono::seconds kDrainAtDeath{10};

// Calls that a thread may make while it captures a stream, if they name another stream.
bool NamesAStream(CallKind kind) {
  switch (kind) {
    case CallKind::kCopy:
    case CallKind::kCopyBatch:
    case CallKind::kFill:
    case CallKind::kLaunch:
    case CallKind::kExternal:
    case CallKind::kRecord:
    case CallKind::kWait:
    case CallKind::kUpload:
    case CallKind::kLaunchGraph:
    case CallKind::kBeginCapture:
    case CallKind::kEndCapture:
    case CallKind::kDestroyStream: return true;
    default: return false;
  }
}

}  // namespace

CheckedDriver::~CheckedDriver() {
  const Gauges left = witness_->gauges();
  if (!(left == Gauges{})) (void)Violated("nothing left alive", absl::StrCat("when the driver went: ", TextOf(left)));
  witness_->Report();
}

// --- every call ---

absl::StatusOr<CheckedDriver::Inside> CheckedDriver::Begin(const Call& call) {
  Inside inside(*this);  // before checking for faults: a thread that kills the device later sees this call
  absl::Status failure = witness_->Begin(call);
  if (failure.ok()) failure = CheckCaller(call);
  if (failure.ok()) return inside;
  inside.Leave();
  if (witness_->dead()) StandStill();
  return failure;
}

CheckedDriver::Inside CheckedDriver::BeginVoid(const Call& call) {
  Inside inside(*this);
  witness_->Note(call);
  (void)CheckCaller(call);
  return inside;
}

absl::Status CheckedDriver::CheckCaller(const Call& call) {
  if (base::InDeviceCode()) {
    return Violated("no calls from device code", absl::StrCat(NameOf(call.kind),
                                                              " was called by code that runs on a "
                                                              "device, which a GPU's cannot; do it in a host node"));
  }
  if (NamesAStream(call.kind)) return absl::OkStatus();  // checked with the stream
  base::MutexLock lock(mu_);
  const CaptureState* const capture = graphs_.FindCaptureBy(std::this_thread::get_id());
  if (capture == nullptr) return absl::OkStatus();
  return Violated("a capture is of work only",
                  absl::StrCat(NameOf(call.kind), " was called by the thread for which stream ", capture->stream.bits,
                               " captures, which may break a capture of CUDA's; end it first"));
}

// A dead device runs nothing more. One that is alive but plays dead is drained before the death is reported, so that
// nothing happens afterwards: first the calls that began earlier, then the work that they and others submitted.
void CheckedDriver::StandStill() {
  if (base::InDeviceCode()) return;  // it would wait for itself
  if (dying_.exchange(true)) {
    while (!still_.load()) std::this_thread::yield();
    return;
  }
  const auto until = std::chrono::steady_clock::now() + kDrainAtDeath;
  while (inside_.load() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  Drain(until);
  still_.store(true);
}

void CheckedDriver::Drain(std::chrono::steady_clock::time_point until) {
  std::vector<std::pair<int, Stream>> streams;
  {
    base::MutexLock lock(mu_);
    for (const auto& [bits, state] : book_.streams()) {
      if (graphs_.FindCapture(Stream{bits}) == nullptr) streams.emplace_back(state.device, state.inner);
    }
  }
  for (const auto& [device, stream] : streams) {
    const int token = inner_->MakeCurrent(device);
    const absl::StatusOr<Event> event = inner_->CreateEvent(device, false);
    if (event.ok() && inner_->Record(*event, stream).ok()) {
      for (;;) {
        const absl::StatusOr<bool> done = inner_->Query(*event);
        if (!done.ok() || *done || std::chrono::steady_clock::now() > until) break;
        std::this_thread::yield();
      }
    }
    if (event.ok()) inner_->DestroyEvent(*event);
    inner_->RestoreCurrent(token);
  }
}

absl::Status CheckedDriver::CheckDevice(int device, const char* what) {
  if (device >= 0 && device < device_count()) return absl::OkStatus();
  return Violated("device exists", absl::StrCat(what, ": device ", device, " of ", device_count()));
}

// The stream below, if this thread may submit work to `stream`.
absl::StatusOr<Stream> CheckedDriver::Submitting(Stream stream, const char* what) {
  bool captured = false;
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, Submitting(stream, what, captured));
  if (!captured) return inner;
  CaptureState& capture = *graphs_.FindCapture(stream);
  absl::Status refused = Violated("a capture is of work only",
                                  absl::StrCat(what, " on stream ", stream.bits, ", which captures; end that first"));
  if (capture.broken.ok()) capture.broken = refused;
  return refused;
}

absl::StatusOr<Stream> CheckedDriver::Submitting(Stream stream, const char* what, bool& captured) {
  const StreamState* state = book_.Find(stream);
  if (state == nullptr) return Violated("stream is alive", absl::StrCat(what, ": ", book_.WhyNot(stream)));
  if (const int now = current_.Now(); now != state->device) {
    return Violated("device is current", absl::StrCat(what, " on stream ", stream.bits, " of device ", state->device,
                                                      " while the thread's current device is ", now));
  }
  const CaptureState* const capture = graphs_.FindCapture(stream);
  captured = capture != nullptr;
  if (captured && capture->by != std::this_thread::get_id()) {
    return Violated("one thread feeds a capture",
                    absl::StrCat(what, " on stream ", stream.bits, ", which captures for another thread"));
  }
  return state->inner;
}

// Captured work is checked at each launch of an exec that contains it.
void CheckedDriver::KeepCaptured(Stream stream, const NodeOp& op) {
  base::MutexLock lock(mu_);
  if (CaptureState* const capture = graphs_.FindCapture(stream)) capture->ops.push_back(KeptOf(op));
}

absl::StatusOr<EventState*> CheckedDriver::Known(Event event, const char* what) {
  EventState* const state = book_.Find(event);
  if (state == nullptr) return Violated("event is alive", absl::StrCat(what, ": ", book_.WhyNot(event)));
  return state;
}

// --- streams and events ---

absl::StatusOr<Stream> CheckedDriver::CreateStream(int device, int priority) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kCreateStream, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "CreateStream"));
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, inner_->CreateStream(device, priority));
  witness_->Change({.streams = 1});
  base::MutexLock lock(mu_);
  return book_.Add(inner, device);
}

void CheckedDriver::DestroyStream(Stream stream) {
  const Inside inside = BeginVoid({.kind = CallKind::kDestroyStream, .stream = static_cast<uint32_t>(stream.bits)});
  if (!stream) return;
  Stream inner;
  {
    base::MutexLock lock(mu_);
    const StreamState* state = book_.Find(stream);
    if (state == nullptr) {
      (void)Violated("destroyed once", absl::StrCat("DestroyStream: ", book_.WhyNot(stream)));
      return;
    }
    if (graphs_.DropCapture(stream)) {
      (void)Violated("a capture ends before its stream", absl::StrCat("DestroyStream: stream ", stream.bits));
      witness_->Change({.captures = -1});
    }
    if (!book_.IsIdle(LineOf(stream)) && !witness_->dead()) {
      (void)Violated("destroyed when idle",
                     absl::StrCat("DestroyStream: stream ", stream.bits, " has ", book_.operations(LineOf(stream)),
                                  " operations, and the host has not seen an event after the last complete"));
    }
    inner = state->inner;
    book_.Remove(stream);
  }
  inner_->DestroyStream(inner);
  witness_->Change({.streams = -1});
}

void* CheckedDriver::NativeStream(Stream stream) const {
  Stream inner;
  {
    base::MutexLock lock(mu_);
    const StreamState* state = book_.Find(stream);
    if (state == nullptr) {
      (void)witness_->Violated("stream is alive", absl::StrCat("NativeStream: ", book_.WhyNot(stream)));
      return nullptr;
    }
    inner = state->inner;
  }
  return inner_->NativeStream(inner);
}

absl::StatusOr<Event> CheckedDriver::CreateEvent(int device, bool timing) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kCreateEvent, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "CreateEvent"));
  PENSTOCK_ASSIGN_OR_RETURN(const Event inner, inner_->CreateEvent(device, timing));
  witness_->Change({.events = 1});
  base::MutexLock lock(mu_);
  return book_.Add(inner, device, timing);
}

void CheckedDriver::DestroyEvent(Event event) {
  const Inside inside = BeginVoid({.kind = CallKind::kDestroyEvent, .event = static_cast<uint32_t>(event.bits)});
  if (!event) return;
  Event inner;
  {
    base::MutexLock lock(mu_);
    const EventState* state = book_.Find(event);
    if (state == nullptr) {
      (void)Violated("destroyed once", absl::StrCat("DestroyEvent: ", book_.WhyNot(event)));
      return;
    }
    inner = state->inner;
    book_.Remove(event);
  }
  inner_->DestroyEvent(inner);
  witness_->Change({.events = -1});
}

absl::Status CheckedDriver::Record(Event event, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kRecord,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .event = static_cast<uint32_t>(event.bits)}));
  Event inner_event;
  Stream inner_stream;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(const EventState* const state, Known(event, "Record"));
    PENSTOCK_ASSIGN_OR_RETURN(inner_stream, Submitting(stream, "Record"));
    if (const int device = book_.Find(stream)->device; state->device != device) {
      return Violated("one device", absl::StrCat("Record: event ", event.bits, " of device ", state->device,
                                                 " on stream ", stream.bits, " of device ", device));
    }
    inner_event = state->inner;
  }
  PENSTOCK_RETURN_IF_ERROR(inner_->Record(inner_event, inner_stream));
  // After the call: a thread that sees the event complete earlier sees the previous record and learns no more from it.
  base::MutexLock lock(mu_);
  EventState* state = book_.Find(event);
  if (state != nullptr && book_.Find(stream) != nullptr) book_.Record(*state, stream);
  return absl::OkStatus();
}

absl::Status CheckedDriver::Wait(Stream stream, Event event) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kWait,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .event = static_cast<uint32_t>(event.bits)}));
  Event inner_event;
  Stream inner_stream;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(const EventState* const state, Known(event, "Wait"));
    PENSTOCK_ASSIGN_OR_RETURN(inner_stream, Submitting(stream, "Wait"));
    if (!state->recorded) {
      // Drivers tolerate it, so it is not refused.
      (void)Violated("recorded before waited for",
                     absl::StrCat("Wait: stream ", stream.bits, " waits for event ", event.bits,
                                  ", which was never recorded; CUDA takes that for complete, and nothing is ordered"));
    }
    inner_event = state->inner;
    book_.Wait(stream, *state);
  }
  return inner_->Wait(inner_stream, inner_event);
}

absl::Status CheckedDriver::WaitNative(Stream stream, void* event) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kWait, .stream = static_cast<uint32_t>(stream.bits)}));
  Stream inner_stream;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner_stream, Submitting(stream, "WaitNative"));
  }
  return inner_->WaitNative(inner_stream, event);
}

// The application's work on its streams is unknown here, so such a record covers nothing.
absl::Status CheckedDriver::RecordOnNative(Event event, void* stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kRecord, .event = static_cast<uint32_t>(event.bits)}));
  Event inner_event;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(EventState* const state, Known(event, "RecordOnNative"));
    state->recorded = true;
    state->covers = {};
    inner_event = state->inner;
  }
  return inner_->RecordOnNative(inner_event, stream);
}

absl::Status CheckedDriver::MakeNativeWait(void* stream, Event event) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kWait, .event = static_cast<uint32_t>(event.bits)}));
  Event inner_event;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(const EventState* const state, Known(event, "MakeNativeWait"));
    inner_event = state->inner;
  }
  return inner_->MakeNativeWait(stream, inner_event);
}

absl::StatusOr<bool> CheckedDriver::Query(Event event) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kQuery, .event = static_cast<uint32_t>(event.bits)}));
  Event inner;
  Clock covers;
  bool recorded = false;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(const EventState* const state, Known(event, "Query"));
    inner = state->inner;
    covers = state->covers;
    recorded = state->recorded;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool complete, inner_->Query(inner));
  if (!complete || !recorded) return complete;
  base::MutexLock lock(mu_);
  if (EventState* state = book_.Find(event)) book_.Completed(*state, covers);
  return true;
}

absl::StatusOr<double> CheckedDriver::Elapsed(Event begin, Event end) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kElapsed, .event = static_cast<uint32_t>(end.bits)}));
  Event inner[2];
  {
    base::MutexLock lock(mu_);
    int device = -1;
    for (int i = 0; i < 2; ++i) {
      const Event event = i == 0 ? begin : end;
      PENSTOCK_ASSIGN_OR_RETURN(const EventState* const state, Known(event, "Elapsed"));
      if (!state->timing || !state->recorded || (i == 1 && state->device != device)) {
        return Violated("timing events", absl::StrCat("Elapsed: event ", event.bits, " of device ", state->device,
                                                      !state->timing     ? " was made without timing"
                                                      : !state->recorded ? " was never recorded"
                                                                         : " is of another device than the first"));
      }
      device = state->device;
      inner[i] = state->inner;
    }
  }
  return inner_->Elapsed(inner[0], inner[1]);
}

// --- memory ---

absl::StatusOr<void*> CheckedDriver::AllocateDevice(int device, size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Inside inside,
      Begin({.kind = CallKind::kAllocateDevice, .device = static_cast<int16_t>(device), .bytes = bytes}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "AllocateDevice"));
  PENSTOCK_ASSIGN_OR_RETURN(void* memory, inner_->AllocateDevice(device, bytes));
  if (memory == nullptr) return memory;
  witness_->Change({.device_blocks = 1, .device_bytes = static_cast<int64_t>(bytes)});
  witness_->Count(&Totals::device_allocations, bytes);
  base::MutexLock lock(mu_);
  memory_.Add(memory, bytes, device);
  return memory;
}

absl::StatusOr<void*> CheckedDriver::AllocatePinned(size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kAllocatePinned, .bytes = bytes}));
  PENSTOCK_ASSIGN_OR_RETURN(void* memory, inner_->AllocatePinned(bytes));
  if (memory == nullptr) return memory;
  witness_->Change({.pinned_blocks = 1, .pinned_bytes = static_cast<int64_t>(bytes)});
  witness_->Count(&Totals::pinned_allocations, bytes);
  base::MutexLock lock(mu_);
  memory_.Add(memory, bytes, -1);
  return memory;
}

bool CheckedDriver::Forget(const void* memory, int device, const char* what) {
  base::MutexLock lock(mu_);
  return memory_.Free(memory, device, what);
}

void CheckedDriver::FreeDevice(int device, void* memory) {
  const Inside inside = BeginVoid({.kind = CallKind::kFreeDevice, .device = static_cast<int16_t>(device)});
  if (memory != nullptr && Forget(memory, device, "FreeDevice")) inner_->FreeDevice(device, memory);
}

bool CheckedDriver::OpenLink(int device, int peer) {
  const bool reaches = inner_->OpenLink(device, peer);
  base::MutexLock lock(mu_);
  if (reaches) memory_.AddLink(device, peer);
  return reaches;
}

void CheckedDriver::FreePinned(void* memory) {
  const Inside inside = BeginVoid({.kind = CallKind::kFreePinned});
  if (memory != nullptr && Forget(memory, -1, "FreePinned")) inner_->FreePinned(memory);
}

absl::StatusOr<PointerInfo> CheckedDriver::Inspect(const void* memory) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kInspect}));
  return inner_->Inspect(memory);
}

// --- work ---

template <class Op>
absl::Status CheckedDriver::Submit(CallKind kind, Stream stream, const Op& op,
                                   absl::Status (Driver::*call)(Stream, const Op&), Totals::Sum Totals::* sum,
                                   size_t pieces) {
  const auto size = SizeOf(op);
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = kind,
                                                        .node = op.tag.node,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .bytes = size.ok() ? size->bytes : 0}));
  PENSTOCK_RETURN_IF_ERROR(size.status());
  Stream inner;
  bool captured = false;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(stream, NameOf(kind), captured));
    if (!captured) {
      PENSTOCK_RETURN_IF_ERROR(memory_.Use(op, book_.Submit(stream, op.tag.node), book_.Find(stream)->device));
    }
  }
  PENSTOCK_RETURN_IF_ERROR((*inner_.*call)(inner, op));
  if (captured) {
    KeepCaptured(stream, &op);
  } else {
    witness_->Count(sum, size->bytes, pieces);
  }
  return absl::OkStatus();
}

absl::Status CheckedDriver::Copy(Stream stream, const CopyOp& op) {
  return Submit(CallKind::kCopy, stream, op, &Driver::Copy, SumOf(op.kind, false), 0);
}

absl::Status CheckedDriver::CopyBatch(Stream stream, const BatchOp& op) {
  return Submit(CallKind::kCopyBatch, stream, op, &Driver::CopyBatch, SumOf(op.kind, true), op.count);
}

absl::Status CheckedDriver::Fill(Stream stream, const FillOp& op) {
  return Submit(CallKind::kFill, stream, op, &Driver::Fill, &Totals::fills, 0);
}

absl::StatusOr<KernelCode> CheckedDriver::LoadKernel(int device, const KernelSource& source) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadKernel"));
  return inner_->LoadKernel(device, source);
}

absl::StatusOr<ImageKernel> CheckedDriver::LoadImage(int device, std::string_view image, const char* symbol,
                                                     bool awaits) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadImage"));
  return inner_->LoadImage(device, image, symbol, awaits);
}

absl::StatusOr<BlockSize> CheckedDriver::FindBlockSize(int device, const KernelCode& code, uint32_t shared_bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kFindBlockSize, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "FindBlockSize"));
  return inner_->FindBlockSize(device, code, shared_bytes);
}

absl::StatusOr<LibraryCode> CheckedDriver::LoadHostcall(int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadHostcall"));
  return inner_->LoadHostcall(device);
}

absl::StatusOr<LibraryCode> CheckedDriver::LoadTimestamp(int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadTimestamp"));
  return inner_->LoadTimestamp(device);
}

absl::StatusOr<Stream> CheckedDriver::SubmitKernel(Stream stream, OpTag tag, const UseSource* uses,
                                                   const std::vector<const void*>& pointers, bool& captured) {
  Stream inner;
  int device = 0;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(stream, "Launch", captured));
    device = book_.Find(stream)->device;
  }
  if (captured) return inner;  // the source may know the uses only at a launch
  std::vector<MemoryUse> declared;
  if (uses != nullptr) uses->AppendUses(tag.node, declared);
  std::vector<Footprint> to_poison;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(to_poison, memory_.UseKernel(pointers, uses == nullptr ? nullptr : &declared,
                                                           book_.Submit(stream, tag.node), device));
  }
  Poison(inner, tag, to_poison);
  return inner;
}

void CheckedDriver::Poison(Stream inner, OpTag tag, const std::vector<Footprint>& boxes) {
  FillOp fill;
  fill.pattern.fill(std::byte{kPoison});
  fill.tag = tag;
  for (const Footprint& box : boxes) {
    fill.dst = reinterpret_cast<void*>(box.begin);
    fill.count = box.width;
    fill.height = box.height;
    fill.depth = box.depth;
    fill.pitch = box.pitch;
    fill.slice = box.slice;
    inner_->Fill(inner, fill).IgnoreError();
  }
}

absl::Status CheckedDriver::Launch(Stream stream, const KernelOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Inside inside,
      Begin({.kind = CallKind::kLaunch, .node = op.tag.node, .stream = static_cast<uint32_t>(stream.bits)}));
  bool captured = false;
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, SubmitKernel(stream, op.tag, op.uses, PointersOf(op), captured));
  PENSTOCK_RETURN_IF_ERROR(inner_->Launch(inner, op));
  if (captured) KeepCaptured(stream, &op);
  return absl::OkStatus();
}

absl::Status CheckedDriver::LaunchContext(Stream stream, OpTag tag, const UseSource& uses) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Inside inside,
      Begin({.kind = CallKind::kExternal, .node = tag.node, .stream = static_cast<uint32_t>(stream.bits)}));
  bool captured = false;
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, SubmitKernel(stream, tag, &uses, {}, captured));
  PENSTOCK_RETURN_IF_ERROR(inner_->LaunchContext(inner, tag, uses));
  const KernelOp kernel{.tag = tag, .uses = &uses};
  if (captured) KeepCaptured(stream, &kernel);
  return absl::OkStatus();
}

std::unique_ptr<Driver> CreateCheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<CallRecorder> witness) {
  return std::make_unique<CheckedDriver>(std::move(inner), std::move(witness));
}

}  // namespace penstock::driver::checked
