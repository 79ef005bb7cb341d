// Somewhat long for one file: the state machine of streams, events and engines under one mutex.
#include "src/driver/host/scheduler.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/thread.h"
#include "src/base/user_code.h"

namespace penstock::driver::host {
namespace {

absl::Status RunGuarded(Task& task, int chunk) {
  base::DeviceCodeScope scope;
  return base::CatchAll("the callable", [&] { return task.Run(chunk); });
}

}  // namespace

Scheduler::Scheduler(int devices, int compute_threads, penstock::host::EventCount* event_count, uint64_t order_seed)
    : event_count_(event_count) {
  uint64_t seed = order_seed;
  for (int d = 0; d < devices; ++d) {
    Device& device = *devices_.emplace_back(std::make_unique<Device>());
    device.engines[static_cast<size_t>(EngineKind::kCompute)].limit = compute_threads;
    for (Engine& engine : device.engines) {
      if (order_seed != 0) engine.order = Order(seed);
      seed += 0x10001;
    }
  }
  try {
    const int threads = compute_threads + static_cast<int>(kEngineKinds) - 1;
    for (int d = 0; d < devices; ++d) {
      Device& device = *devices_[static_cast<size_t>(d)];
      for (int i = 0; i < threads; ++i) {
        device.threads.push_back(
            base::StartThread(absl::StrCat("ps-", d, "-run", i), [this, &device] { Work(device); }));
      }
    }
  } catch (...) {  // std::system_error, or std::bad_alloc
    Stop();
    throw;
  }
}

Scheduler::~Scheduler() {
  {
    base::MutexLock lock(mu_);
    while (queued_ > 0) drained_.Wait(mu_);
  }
  Stop();
}

void Scheduler::Stop() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    WakeAll();
  }
  for (auto& device : devices_) {
    for (auto& thread : device->threads) thread.join();
  }
}

// --- handles ---

absl::StatusOr<Stream> Scheduler::CreateStream(int device, int priority) {
  auto state = std::make_shared<StreamState>();
  state->device = device;
  state->priority = priority;
  base::MutexLock lock(mu_);
  const Stream stream{streams_.Add(std::move(state))};
  if (!stream) return absl::ResourceExhaustedError("too many streams are alive");
  return stream;
}

void Scheduler::DestroyStream(Stream stream) {
  base::MutexLock lock(mu_);
  streams_.Remove(stream.bits);
}

absl::StatusOr<int> Scheduler::DeviceOf(Stream stream) {
  base::MutexLock lock(mu_);
  const auto* state = streams_.Find(stream.bits);
  if (!state) return NotAlive("stream");
  return (*state)->device;
}

absl::StatusOr<int> Scheduler::PriorityOf(Stream stream) {
  base::MutexLock lock(mu_);
  const auto* state = streams_.Find(stream.bits);
  if (!state) return NotAlive("stream");
  return (*state)->priority;
}

absl::StatusOr<Event> Scheduler::CreateEvent(int device, bool timing) {
  base::MutexLock lock(mu_);
  const Event event{events_.Add(EventState{device, timing, nullptr})};
  if (!event) return absl::ResourceExhaustedError("too many events are alive");
  return event;
}

void Scheduler::DestroyEvent(Event event) {
  base::MutexLock lock(mu_);
  events_.Remove(event.bits);
}

// --- submission ---

absl::Status Scheduler::Submit(Stream stream, EngineKind engine, std::unique_ptr<Task> task) {
  bool rang = false;
  Command command;
  command.task = std::move(task);
  command.engine = engine;
  absl::Status status;
  Wakes wakes;
  {
    base::MutexLock lock(mu_);
    status = Push(stream, std::move(command), rang);
    wakes = TakeWakes();
  }
  Wake(wakes);
  Notify(rang);
  return status;
}

absl::Status Scheduler::SubmitGraph(Stream stream, std::vector<GraphStep> steps, Turn& turn) {
  std::shared_ptr<Launch> launch = MakeLaunch(std::move(steps));
  std::vector<std::shared_ptr<Launch>> ended;  // destroyed after the lock is released
  Wakes wakes;
  bool rang = false;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<StreamState> launcher, AwaitRoom(stream));
    const auto end = std::make_shared<Mark>(Mark{.of_graph = true});
    if (turn.last_) Append(*launcher, {.wait = turn.last_});
    Append(*launcher, {.launch = std::move(launch)});
    Append(*launcher, {.record = end});
    turn.last_ = end;
    if (!launcher->busy) rang = Advance(launcher);
    ended.swap(ended_);
    wakes = TakeWakes();
  }
  Wake(wakes);
  Notify(rang);
  return absl::OkStatus();
}

absl::Status Scheduler::Record(Event event, Stream stream) {
  Wakes wakes;
  bool rang = false;
  {
    base::MutexLock lock(mu_);
    const EventState* state = events_.Find(event.bits);
    const auto* target = streams_.Find(stream.bits);
    if (!state) return NotAlive("event");
    if (!target) return NotAlive("stream");
    if ((*target)->device != state->device) {
      return absl::InvalidArgumentError(absl::StrCat("an event of device ", state->device,
                                                     " cannot be recorded on a stream of device ", (*target)->device));
    }
    Command command;
    command.record = std::make_shared<Mark>();
    const std::shared_ptr<Mark> mark = command.record;
    const absl::Status status = Push(stream, std::move(command), rang);
    if (!status.ok()) return status;
    // Push may have slept, so look the event up again.
    if (EventState* recorded = events_.Find(event.bits)) recorded->mark = mark;
    wakes = TakeWakes();
  }
  Wake(wakes);
  Notify(rang);
  return absl::OkStatus();
}

absl::Status Scheduler::Wait(Stream stream, Event event) {
  base::MutexLock lock(mu_);
  const EventState* state = events_.Find(event.bits);
  if (!state) return NotAlive("event");
  if (!streams_.Find(stream.bits)) return NotAlive("stream");
  if (!state->mark || state->mark->complete) return absl::OkStatus();
  Command command;
  command.wait = state->mark;
  bool rang = false;  // a wait completes no event
  return Push(stream, std::move(command), rang);
}

absl::StatusOr<bool> Scheduler::Query(Event event) {
  base::MutexLock lock(mu_);
  const EventState* state = events_.Find(event.bits);
  if (!state) return NotAlive("event");
  return !state->mark || state->mark->complete;
}

absl::StatusOr<double> Scheduler::Elapsed(Event begin, Event end) {
  base::MutexLock lock(mu_);
  std::chrono::steady_clock::time_point when[2];
  int device[2] = {};
  for (int i = 0; i < 2; ++i) {
    const EventState* state = events_.Find((i == 0 ? begin : end).bits);
    if (!state) return NotAlive("event");
    if (!state->timing) return absl::InvalidArgumentError("an event made without timing has no time");
    if (!state->mark) return absl::InvalidArgumentError("an event that was never recorded has no time");
    if (!state->mark->complete) return absl::FailedPreconditionError("the event is not complete; query it first");
    when[i] = state->mark->when;
    device[i] = state->device;
  }
  if (device[0] != device[1]) return absl::InvalidArgumentError("the events are of different devices");
  return std::chrono::duration<double, std::micro>(when[1] - when[0]).count();
}

// --- queues ---

// Sleeps while the stream is full.
absl::StatusOr<std::shared_ptr<Scheduler::StreamState>> Scheduler::AwaitRoom(Stream handle) {
  while (true) {
    const auto* found = streams_.Find(handle.bits);
    if (!found) return NotAlive("stream");
    if ((*found)->commands.size() < kMostQueued) return *found;
    ++submitters_waiting_;
    room_.Wait(mu_);
    --submitters_waiting_;
  }
}

absl::Status Scheduler::Push(Stream handle, Command command, bool& rang) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<StreamState> stream, AwaitRoom(handle));
  Append(*stream, std::move(command));
  if (!stream->busy) rang = Advance(stream);
  return absl::OkStatus();
}

void Scheduler::Append(StreamState& stream, Command command) {
  stream.commands.push_back(std::move(command));
  ++queued_;
}

// Makes a stream for each task, with the device and priority by which engines take it up.
std::shared_ptr<Scheduler::Launch> Scheduler::MakeLaunch(std::vector<GraphStep> steps) {
  auto launch = std::make_shared<Launch>(std::move(steps));
  GraphRun& run = launch->run;
  for (int32_t node = 0; node < run.count(); ++node) {
    host::Work work = run.TakeWork(node);
    std::shared_ptr<StreamState>& stream = launch->nodes.emplace_back();
    if (!work.task) continue;
    stream = std::make_shared<StreamState>(
        StreamState{.device = run.device(node), .priority = run.priority(node), .of = launch.get(), .node = node});
    stream->commands.push_back({.task = std::move(work.task), .engine = work.engine});
  }
  return launch;
}

void Scheduler::Pop(StreamState& stream) {
  if (stream.commands.size() == kMostQueued && submitters_waiting_ > 0) room_.NotifyAll();
  stream.commands.pop_front();
  if (--queued_ == 0) drained_.NotifyAll();
}

// Runs the heads of `first`, and of the streams that this unblocks, up to each one's next task or wait. Returns whether
// an event completed.
bool Scheduler::Advance(std::shared_ptr<StreamState> first) {
  bool rang = false;
  turn_.push_back(std::move(first));
  while (!turn_.empty()) {
    const std::shared_ptr<StreamState> stream = std::move(turn_.back());
    turn_.pop_back();
    while (!stream->busy && !stream->commands.empty()) {
      Command& head = stream->commands.front();
      if (head.task) {
        Offer(stream);
        break;
      }
      if (head.wait && !head.wait->complete) {
        stream->busy = true;
        head.wait->waiters.push_back(stream);
        break;
      }
      if (head.launch) {
        stream->busy = true;
        head.launch->on = stream;
        const bool ended = head.launch->run.Start(ready_);
        OfferReady(*head.launch);
        if (!ended) break;
        stream->busy = false;
        head.launch->on = nullptr;
        ended_.push_back(std::move(head.launch));
      }
      if (head.record) {
        head.record->complete = true;
        head.record->when = std::chrono::steady_clock::now();
        // Taken from the back, so the waiter that came first is handled first.
        for (auto waiter = head.record->waiters.rbegin(); waiter != head.record->waiters.rend(); ++waiter) {
          (*waiter)->busy = false;
          turn_.push_back(std::move(*waiter));
        }
        head.record->waiters.clear();
        rang = rang || !head.record->of_graph;
      }
      Pop(*stream);
    }
  }
  return rang;
}

void Scheduler::OfferReady(const Launch& launch) {
  for (const int32_t node : ready_) Offer(launch.nodes[static_cast<size_t>(node)]);
  ready_.clear();
}

// Gives the task at the head to its engine.
void Scheduler::Offer(const std::shared_ptr<StreamState>& stream) {
  const Command& head = stream->commands.front();
  stream->busy = true;
  stream->next_chunk = 0;
  stream->chunks_running = 0;
  Device& device = *devices_[static_cast<size_t>(stream->device)];
  Engine& to = device.engines[static_cast<size_t>(head.engine)];
  const auto place = std::upper_bound(to.ready.begin(), to.ready.end(), stream->priority,
                                      [](int priority, const auto& other) { return priority < other->priority; });
  to.ready.insert(place, stream);
  if (offered_.empty() || offered_.back() != &device) offered_.push_back(&device);
}

// Says which threads to wake for what has been offered, besides the caller if it is a device's thread: that will take a
// task next.
Scheduler::Wakes Scheduler::TakeWakes(Device* taker) {
  Wakes wakes;
  if (taker != nullptr) offered_.push_back(taker);
  for (Device* const device : offered_) {
    int chunks = -device->woken - (device == taker ? 1 : 0);
    for (const Engine& engine : device->engines) {
      const int room = engine.limit - engine.running;
      int waiting = 0;
      for (auto s = engine.ready.begin(); s != engine.ready.end() && waiting < room; ++s) {
        waiting += (*s)->commands.front().task->chunks - (*s)->next_chunk;
      }
      chunks += std::min(room, waiting);
    }
    const int count = std::min(chunks, device->idle - device->woken);
    if (count <= 0) continue;
    device->woken += count;
    wakes.emplace_back(device, count);
  }
  offered_.clear();
  return wakes;
}

void Scheduler::Wake(const Wakes& wakes) {
  for (const auto& [device, count] : wakes) {
    for (int i = 0; i < count; ++i) device->work.NotifyOne();
  }
}

// --- threads of devices ---

void Scheduler::Work(Device& device) {
  while (std::optional<Claim> claim = Take(device)) {
    for (int i = 0; i < claim->delay; ++i) std::this_thread::yield();
    base::WhenThreadEnds go_on([&] {
      Finish(*claim, device);
      base::GoOnElsewhere([&] { Work(device); });
    });
    if (!claim->skip) Execute(*claim);
    go_on.Cancel();
    Finish(*claim, device);
  }
}

// Sleeps until there is a task. Returns nothing if the scheduler stops.
std::optional<Scheduler::Claim> Scheduler::Take(Device& device) {
  base::MutexLock lock(mu_);
  while (true) {
    std::optional<Claim> claim = TryClaim(device);
    if (claim || stopping_) return claim;
    ++device.idle;
    device.work.Wait(mu_);
    --device.idle;
    if (device.woken > 0) --device.woken;
  }
}

std::optional<Scheduler::Claim> Scheduler::TryClaim(Device& device) {
  for (Engine& engine : device.engines) {
    if (engine.running == engine.limit) continue;
    if (std::optional<Claim> claim = TryClaim(engine)) return claim;
  }
  return std::nullopt;
}

std::optional<Scheduler::Claim> Scheduler::TryClaim(Engine& engine) {
  const size_t count = engine.ready.size(), first = count == 0 ? 0 : engine.order.First(count);
  for (size_t k = 0; k < count; ++k) {
    const size_t i = (first + k) % count;
    Claim claim;
    claim.stream = engine.ready[i];
    claim.engine = &engine;
    StreamState& stream = *claim.stream;
    claim.task = stream.commands.front().task.get();
    const bool starts = stream.next_chunk == 0;
    claim.skip = starts && claim.task->tag.fault && claim.task->tag.fault->failed();
    if (starts && !claim.skip && claim.task->gate) {
      if (claim.task->gate->running >= claim.task->gate->limit) continue;
      ++claim.task->gate->running;
    }
    claim.delay = engine.order.Delay();
    claim.chunk = stream.next_chunk;
    stream.next_chunk = claim.skip ? claim.task->chunks : stream.next_chunk + 1;
    ++stream.chunks_running;
    ++engine.running;
    if (stream.next_chunk == claim.task->chunks) engine.ready.erase(engine.ready.begin() + static_cast<ptrdiff_t>(i));
    return claim;
  }
  return std::nullopt;
}

void Scheduler::Execute(Claim& claim) {
  const OpTag& tag = claim.task->tag;
  const auto fail = [&](absl::Status status) {
    claim.failed = true;
    if (tag.fault) tag.fault->Fail(tag.node, std::move(status));
  };
  base::WhenThreadEnds ended([&] { fail(base::EndedItsThread("the callable")); });
  absl::Status status = RunGuarded(*claim.task, claim.chunk);
  ended.Cancel();
  if (!status.ok()) fail(std::move(status));
}

void Scheduler::Finish(const Claim& claim, Device& device) {
  std::unique_ptr<Task> done;  // both destroyed after the lock is released
  std::vector<std::shared_ptr<Launch>> ended;
  Wakes wakes;
  bool rang = false;
  {
    base::MutexLock lock(mu_);
    rang = EndChunk(claim, done);
    ended.swap(ended_);
    wakes = TakeWakes(&device);
  }
  Wake(wakes);
  Notify(rang);
}

// Returns whether an event completed.
bool Scheduler::EndChunk(const Claim& claim, std::unique_ptr<Task>& done) {
  StreamState& stream = *claim.stream;
  --claim.engine->running;
  if (claim.task->gate && !claim.skip) OpenGate(*claim.task->gate);
  if (claim.failed) WakeAll();  // work of the same run may be waiting at a gate
  if (--stream.chunks_running > 0 || stream.next_chunk < claim.task->chunks) return false;
  if (stream.of != nullptr) return FinishNode(*stream.of, stream.node);
  done = std::move(stream.commands.front().task);
  Pop(stream);
  stream.busy = false;
  return Advance(claim.stream);
}

// Returns whether an event completed.
bool Scheduler::FinishNode(Launch& launch, int32_t node) {
  const bool has_ended = launch.run.End(node, ready_);
  OfferReady(launch);
  if (!has_ended) return false;
  const std::shared_ptr<StreamState> on = std::move(launch.on);
  ended_.push_back(std::move(on->commands.front().launch));
  Pop(*on);
  on->busy = false;
  return Advance(on);
}

void Scheduler::OpenGate(TrySemaphore& gate) {
  if (gate.running-- < gate.limit) return;
  for (auto& device : devices_) {
    const std::deque<std::shared_ptr<StreamState>>& ready =
        device->engines[static_cast<size_t>(EngineKind::kCompute)].ready;
    const bool waits = std::any_of(ready.begin(), ready.end(),
                                   [&](const auto& stream) { return stream->commands.front().task->gate == &gate; });
    if (waits) device->work.NotifyOne();
  }
}

void Scheduler::WakeAll() {
  for (auto& device : devices_) device->work.NotifyAll();
}

}  // namespace penstock::driver::host
