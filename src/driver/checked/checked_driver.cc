// Each call: note it, take a planned fault, check it against the books and write it there, call the driver below. What
// is known of order lies in StreamBook, of memory in MemoryRules; this file is the seam's one class.
#include "src/driver/checked/checked_driver.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/user_code.h"
#include "src/driver/checked/current_device.h"
#include "src/driver/checked/memory_rules.h"
#include "src/driver/checked/stream_book.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::checked {
namespace {

constexpr std::chrono::seconds kDrainAtDeath{10};

Mode ModeOf(const MemoryUse& use) {
  if (!use.ordered) return Mode::kUnknown;
  return use.reads && use.writes ? Mode::kReadWrite : use.writes ? Mode::kWrite : Mode::kRead;
}

Footprint Source(const CopyOp& op) {
  return Footprint(op.src, op.width, op.height, op.depth, op.src_pitch, op.src_slice);
}
Footprint Destination(const CopyOp& op) {
  return Footprint(op.dst, op.width, op.height, op.depth, op.dst_pitch, op.dst_slice);
}

Totals::Sum Totals::* SumOf(CopyKind kind, bool batch) {
  switch (kind) {
    case CopyKind::kHostToDevice: return batch ? &Totals::batch_uploads : &Totals::uploads;
    case CopyKind::kDeviceToHost: return batch ? &Totals::batch_downloads : &Totals::downloads;
    case CopyKind::kDeviceToDevice: return batch ? &Totals::batch_inside : &Totals::inside;
    case CopyKind::kPeer: break;
  }
  return &Totals::peer;
}

class CheckedDriver final : public Driver {
 public:
  CheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<Witness> witness)
      : inner_(std::move(inner)), witness_(std::move(witness)), memory_(*inner_, *witness_, book_) {}
  ~CheckedDriver() override;

  int device_count() const override { return inner_->device_count(); }
  const DeviceInfo& device(int device) const override { return inner_->device(device); }
  int MakeCurrent(int device) override { return current_.Enter(device, inner_->MakeCurrent(device)); }
  void RestoreCurrent(int token) override { inner_->RestoreCurrent(current_.Leave(token)); }
  bool rings() const override { return inner_->rings(); }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override;
  void DestroyStream(Stream stream) override;
  void* NativeStream(Stream stream) const override;
  absl::StatusOr<Event> CreateEvent(int device, bool timing) override;
  void DestroyEvent(Event event) override;
  absl::Status Record(Event event, Stream stream) override;
  absl::Status Wait(Stream stream, Event event) override;
  absl::Status WaitNative(Stream stream, void* event) override;
  absl::StatusOr<bool> Query(Event event) override;
  absl::StatusOr<double> Elapsed(Event begin, Event end) override;

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override;
  void FreeDevice(int device, void* memory) override;
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory) override;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override;
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override;
  absl::Status Fill(Stream stream, const FillOp& op) override;
  absl::StatusOr<const void*> LoadKernel(int device, const KernelSource& source) override;
  absl::Status Launch(Stream stream, const KernelOp& op) override;
  absl::Status Foreign(Stream stream, OpTag tag, const UseSource& uses) override;

 private:
  // Counts who is inside a call, and reports at its end what broke a rule: by then mu_ is no longer held.
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

  absl::StatusOr<Inside> Begin(const Call& call);
  Inside BeginVoid(const Call& call);
  absl::Status Violated(const char* rule, const std::string& what) { return witness_->Violated(rule, what); }
  absl::Status CheckCaller(const Call& call);
  void StandStill();
  void Drain(std::chrono::steady_clock::time_point until);
  absl::StatusOr<Stream> Submitting(Stream stream, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<EventState*> Known(Event event, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckDevice(int device, const char* what);
  bool Forget(const void* memory, int device, const char* what);

  // A copy or a batch; `call` is made below.
  template <class Op>
  absl::Status Submit(CallKind kind, Stream stream, const Op& op, absl::Status (Driver::*call)(Stream, const Op&),
                      size_t pieces);
  // Counts an operation among the stream's, and writes what it does to memory to the books.
  absl::Status Book(const CopyOp& op, StreamState& state, uint64_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Book(const BatchOp& op, StreamState& state, uint64_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The latter alone, of one copy.
  absl::Status UseCopy(const CopyOp& op, const StreamState& state, uint64_t stream, const char* what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Stream> UseDeclared(Stream stream, OpTag tag, const UseSource* uses, const KernelOp* op,
                                     std::vector<Footprint>& to_poison);
  void Poison(Stream inner, OpTag tag, const std::vector<Footprint>& boxes);

  const std::unique_ptr<Driver> inner_;
  const std::shared_ptr<Witness> witness_;
  CurrentDevices current_;
  std::atomic<int> inside_{0};
  std::atomic<bool> dying_{false}, still_{false};

  mutable base::Mutex mu_;
  StreamBook book_ ABSL_GUARDED_BY(mu_);
  MemoryRules memory_ ABSL_GUARDED_BY(mu_);
};

CheckedDriver::~CheckedDriver() {
  const Gauges left = witness_->gauges();
  if (!(left == Gauges{})) (void)Violated("nothing left alive", absl::StrCat("when the driver went: ", TextOf(left)));
  witness_->Report();
}

// --- every call ---

absl::StatusOr<CheckedDriver::Inside> CheckedDriver::Begin(const Call& call) {
  Inside inside(*this);  // before the fault is looked for: whoever dies after that sees this call
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
  if (!base::InDeviceCode()) return absl::OkStatus();
  return Violated("no calls from device code", absl::StrCat(NameOf(call.kind),
                                                            " was called by code that runs on a "
                                                            "device, which a GPU's cannot; do it in a host node"));
}

// A dead device runs nothing on. A live one that plays dead is waited for before anybody is told, so that nothing it
// does comes after: for calls that began before, then for what they and others submitted.
void CheckedDriver::StandStill() {
  if (base::InDeviceCode()) return;  // which would wait for itself
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
    for (const auto& [bits, state] : book_.streams()) streams.emplace_back(state.device, state.inner);
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

// The stream below, where work may be submitted to `stream` by this thread.
absl::StatusOr<Stream> CheckedDriver::Submitting(Stream stream, const char* what) {
  const StreamState* state = book_.Find(stream);
  if (state == nullptr) return Violated("stream is alive", absl::StrCat(what, ": ", book_.WhyNot(stream)));
  if (const int now = current_.Now(); now != state->device) {
    return Violated("device is current", absl::StrCat(what, " on stream ", stream.bits, " of device ", state->device,
                                                      " while the thread's current device is ", now));
  }
  return state->inner;
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
    if (!book_.IsOver(stream.bits, state->operations) && !witness_->dead()) {
      (void)Violated("destroyed when idle",
                     absl::StrCat("DestroyStream: stream ", stream.bits, " has ", state->operations,
                                  " operations, and the host has not seen an event behind the last complete"));
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
  // After the call: who sees the event complete before, sees its record before this one, and learns no more from it.
  base::MutexLock lock(mu_);
  EventState* state = book_.Find(event);
  const StreamState* on = book_.Find(stream);
  if (state != nullptr && on != nullptr) book_.Record(*state, stream, *on);
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
      // Drivers bear it, and so it is not refused.
      (void)Violated("recorded before waited for",
                     absl::StrCat("Wait: stream ", stream.bits, " waits for event ", event.bits,
                                  ", which was never recorded; CUDA takes that for complete, and nothing is ordered"));
    }
    inner_event = state->inner;
    book_.Wait(*book_.Find(stream), *state);
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

void CheckedDriver::FreePinned(void* memory) {
  const Inside inside = BeginVoid({.kind = CallKind::kFreePinned});
  if (memory != nullptr && Forget(memory, -1, "FreePinned")) inner_->FreePinned(memory);
}

absl::StatusOr<PointerInfo> CheckedDriver::Inspect(const void* memory) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kInspect}));
  return inner_->Inspect(memory);
}

// --- work ---

absl::Status CheckedDriver::UseCopy(const CopyOp& op, const StreamState& state, uint64_t stream, const char* what) {
  const bool peer = op.kind == CopyKind::kPeer;
  const int to = op.kind == CopyKind::kDeviceToHost ? -1 : peer ? op.dst_device : state.device;
  const int from = op.kind == CopyKind::kHostToDevice ? -1 : peer ? op.src_device : state.device;
  PENSTOCK_RETURN_IF_ERROR(memory_.Use({Source(op), Mode::kRead, stream, state.operations, op.tag.node}, from,
                                       absl::StrCat(what, ": the source").c_str()));
  return memory_.Use({Destination(op), Mode::kWrite, stream, state.operations, op.tag.node}, to,
                     absl::StrCat(what, ": the destination").c_str());
}

absl::Status CheckedDriver::Book(const CopyOp& op, StreamState& state, uint64_t stream) {
  if (op.kind == CopyKind::kPeer && op.src_device != state.device && op.dst_device != state.device) {
    return Violated("one device", absl::StrCat("Copy between devices ", op.src_device, " and ", op.dst_device,
                                               " on stream ", stream, " of device ", state.device));
  }
  if (FindClash({{Source(op), false}, {Destination(op), true}})) {
    return Violated("source and destination apart",
                    absl::StrCat("Copy: ", TextOf(Source(op)), " to ", TextOf(Destination(op))));
  }
  ++state.operations;
  return UseCopy(op, state, stream, "Copy");
}

absl::Status CheckedDriver::Book(const BatchOp& op, StreamState& state, uint64_t stream) {
  ++state.operations;
  const BatchSize size = SizeOf(op).value_or(BatchSize());  // Submit has asked
  if (op.size.bytes != 0 && !(op.size == size)) {
    return Violated("the size of a batch that of its pieces",
                    absl::StrCat("CopyBatch: ", op.size.bytes, " bytes, in the largest piece ", op.size.largest,
                                 "; its pieces have ", size.bytes, " and ", size.largest));
  }
  std::vector<Use> uses;
  for (size_t i = 0; i < op.count; ++i) {
    const CopyOp piece = CopyOf(op.pieces[i], op);
    uses.push_back({Source(piece), false});
    uses.push_back({Destination(piece), true});
  }
  if (const auto clash = FindClash(uses)) {
    return Violated("pieces apart", absl::StrCat("CopyBatch: piece ", clash->first / 2, ", ",
                                                 TextOf(uses[clash->first].box), ", and piece ", clash->second / 2,
                                                 ", ", TextOf(uses[clash->second].box), ", are copied in any order"));
  }
  const Footprint table(op.pieces, op.count * sizeof(CopyPiece));
  PENSTOCK_RETURN_IF_ERROR(
      memory_.Use({table, Mode::kRead, stream, state.operations, op.tag.node}, -1, "CopyBatch: the table"));
  for (size_t i = 0; i < op.count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(
        UseCopy(CopyOf(op.pieces[i], op), state, stream, absl::StrCat("CopyBatch: piece ", i).c_str()));
  }
  return absl::OkStatus();
}

template <class Op>
absl::Status CheckedDriver::Submit(CallKind kind, Stream stream, const Op& op,
                                   absl::Status (Driver::*call)(Stream, const Op&), size_t pieces) {
  const auto size = SizeOf(op);
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = kind,
                                                        .node = op.tag.node,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .bytes = size.ok() ? size->bytes : 0}));
  PENSTOCK_RETURN_IF_ERROR(size.status());
  Stream inner;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(stream, NameOf(kind)));
    PENSTOCK_RETURN_IF_ERROR(Book(op, *book_.Find(stream), stream.bits));
  }
  PENSTOCK_RETURN_IF_ERROR((*inner_.*call)(inner, op));
  witness_->Count(SumOf(op.kind, kind == CallKind::kCopyBatch), size->bytes, pieces);
  return absl::OkStatus();
}

absl::Status CheckedDriver::Copy(Stream stream, const CopyOp& op) {
  return Submit(CallKind::kCopy, stream, op, &Driver::Copy, 0);
}

absl::Status CheckedDriver::CopyBatch(Stream stream, const BatchOp& op) {
  return Submit(CallKind::kCopyBatch, stream, op, &Driver::CopyBatch, op.count);
}

absl::Status CheckedDriver::Fill(Stream stream, const FillOp& op) {
  const absl::StatusOr<FillSize> size = SizeOf(op);
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kFill,
                                                        .node = op.tag.node,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .bytes = size.ok() ? size->bytes : 0}));
  PENSTOCK_RETURN_IF_ERROR(size.status());
  Stream inner;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(stream, "Fill"));
    StreamState& state = *book_.Find(stream);
    const Footprint dst(op.dst, size->width, op.height, op.depth, op.pitch, op.slice);
    PENSTOCK_RETURN_IF_ERROR(memory_.Use({dst, Mode::kWrite, stream.bits, ++state.operations, op.tag.node},
                                         state.device, "Fill: the destination"));
  }
  PENSTOCK_RETURN_IF_ERROR(inner_->Fill(inner, op));
  witness_->Count(&Totals::fills, size->bytes);
  return absl::OkStatus();
}

absl::StatusOr<const void*> CheckedDriver::LoadKernel(int device, const KernelSource& source) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadKernel"));
  return inner_->LoadKernel(device, source);
}

absl::StatusOr<Stream> CheckedDriver::UseDeclared(Stream stream, OpTag tag, const UseSource* uses, const KernelOp* op,
                                                  std::vector<Footprint>& to_poison) {
  std::vector<MemoryUse> declared;
  if (uses != nullptr) uses->AppendUses(tag.node, declared);
  base::MutexLock lock(mu_);
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, Submitting(stream, "Launch"));
  StreamState& state = *book_.Find(stream);
  const Access any{{}, Mode::kUnknown, stream.bits, ++state.operations, tag.node};
  if (op != nullptr) PENSTOCK_RETURN_IF_ERROR(memory_.UsePointers(*op, any, state.device));
  std::vector<Access> accesses;
  for (const MemoryUse& use : declared) {
    Access access = any;
    access.box = Footprint(use.data, use.width, use.height, use.depth, use.pitch, use.slice);
    access.mode = ModeOf(use);
    accesses.push_back(access);
  }
  PENSTOCK_RETURN_IF_ERROR(memory_.UseAll(accesses, state.device));
  for (const Access& access : accesses) {
    if (memory_.IsPoisonable(accesses, access)) to_poison.push_back(access.box);
  }
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
  std::vector<Footprint> to_poison;
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, UseDeclared(stream, op.tag, op.uses, &op, to_poison));
  Poison(inner, op.tag, to_poison);
  return inner_->Launch(inner, op);
}

absl::Status CheckedDriver::Foreign(Stream stream, OpTag tag, const UseSource& uses) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Inside inside,
      Begin({.kind = CallKind::kForeign, .node = tag.node, .stream = static_cast<uint32_t>(stream.bits)}));
  std::vector<Footprint> to_poison;
  PENSTOCK_ASSIGN_OR_RETURN(const Stream inner, UseDeclared(stream, tag, &uses, nullptr, to_poison));
  Poison(inner, tag, to_poison);
  return inner_->Foreign(inner, tag, uses);
}

}  // namespace

std::unique_ptr<Driver> CreateCheckedDriver(std::unique_ptr<Driver> inner, std::shared_ptr<Witness> witness) {
  return std::make_unique<CheckedDriver>(std::move(inner), std::move(witness));
}

}  // namespace penstock::driver::checked
