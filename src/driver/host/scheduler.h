// Scheduler: streams, events and the threads of host devices: which thread runs which work, and when.
//
// Each device has three engines: upload and download, which do one thing at a time, and compute, which does a
// configurable number. A stream is a queue of commands. The command at its head completes immediately (an event record,
// a wait for something complete), blocks the stream (a wait), or is a Task that its engine takes up, chunk by chunk.
// After the last chunk the next command follows. Callers' threads never run a Task.
//
// The engines of a device share its threads, of which there are as many as the engines may do at once. So a thread that
// has ended a task goes on with one that follows it, whatever engine that is of: to wake another takes longer than most
// small tasks. Threads are woken for what is left.
//
// A graph's launch is one command of the launching stream, which it blocks until the graph has ended. A GraphRun says
// which of the graph's tasks may run; each of them stands alone in a stream of its device without a handle, which is
// offered to its engine as often as the task runs, so that an iteration of a loop queues behind other streams' work as
// any task does.
//
// An event's handle names the state of its latest record. A wait uses the state at the time of the call, so a later
// record does not change what it waits for, as in CUDA.
//
// Ownership: commands own what they need; destroying a stream or event with work queued ends only its handle. The
//            EventCount must outlive the Scheduler.
// Threads:   thread-safe. One mutex, mu_, guards all state, including that of streams, engines and gates. It is never
//            held while a Task runs or the event count is notified, and no other lock is taken inside it. Threads are
//            woken for new work after it has been released, so that they find it free.
// Ordering:  the effects of a Task are visible to every command ordered after it, and to any thread that sees a later
//            event complete.
// Errors:    a Task that fails or throws is reported to its RunFault, and the stream goes on. A Task does not run if
//            its RunFault has failed before it starts. InvalidArgument for handles that are not alive.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/driver/host/graph_run.h"
#include "src/driver/host/handle_table.h"
#include "src/driver/host/order.h"
#include "src/driver/host/tasks.h"
#include "src/host/event_count.h"

namespace penstock::driver::host {

// A submitter waits while its stream holds this many commands, as with CUDA.
inline constexpr size_t kMostQueued = 1024;

class Scheduler {
  struct Mark;

 public:
  // `event_count` may be null. Throws std::system_error if the system grants no threads. If `order_seed` is not 0, it
  // seeds the order in which ready commands are taken up (order.h).
  Scheduler(int devices, int compute_threads, penstock::host::EventCount* event_count, uint64_t order_seed = 0);
  // Finishes the queued work.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  absl::StatusOr<Stream> CreateStream(int device, int priority);
  void DestroyStream(Stream stream);
  absl::StatusOr<int> DeviceOf(Stream stream);
  absl::StatusOr<int> PriorityOf(Stream stream);

  absl::StatusOr<Event> CreateEvent(int device, bool timing);
  void DestroyEvent(Event event);

  // For graphs that must not overlap each other: the end of the one submitted last.
  class Turn {
    friend class Scheduler;
    std::shared_ptr<Mark> last_;  // null: none yet; guarded by the scheduler's mu_
  };

  absl::Status Submit(Stream stream, EngineKind engine, std::unique_ptr<Task> task);
  // Submits steps that only `after` orders among themselves. They begin after the graph submitted before with the same
  // `turn` has ended.
  absl::Status SubmitGraph(Stream stream, std::vector<GraphStep> steps, Turn& turn);
  absl::Status Record(Event event, Stream stream);
  absl::Status Wait(Stream stream, Event event);
  absl::StatusOr<bool> Query(Event event);
  absl::StatusOr<double> Elapsed(Event begin, Event end);

 private:
  struct StreamState;
  struct Launch;
  // One record of an event, or a point that a graph passes. The event's handle, the record and the waits share it.
  struct Mark {
    bool of_graph = false;  // cannot be queried, so it does not notify
    bool complete = false;
    std::chrono::steady_clock::time_point when{};
    std::vector<std::shared_ptr<StreamState>> waiters{};
  };
  struct EventState {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;  // null: never recorded
  };
  // Exactly one of the four is set.
  struct Command {
    std::unique_ptr<Task> task{};
    EngineKind engine = EngineKind::kCompute;  // of the task
    std::shared_ptr<Mark> record{};
    std::shared_ptr<Mark> wait{};
    std::shared_ptr<Launch> launch{};
  };
  struct StreamState {
    int device = 0;
    int priority = 0;
    std::deque<Command> commands{};
    bool busy = false;  // an engine has the head, or it waits for a mark or a graph's end
    Launch* of = nullptr;  // set where the stream is a graph's node: its one command stays
    int32_t node = -1;
    int next_chunk = 0;  // in the task at the head
    int chunks_running = 0;
  };
  struct Launch {
    explicit Launch(std::vector<GraphStep> steps) : run(std::move(steps)) {}
    GraphRun run;
    std::vector<std::shared_ptr<StreamState>> nodes{};  // null where there is no task
    std::shared_ptr<StreamState> on{};  // the launching stream, while the graph runs
  };
  struct Engine {
    std::deque<std::shared_ptr<StreamState>> ready;  // heads with chunks to hand out, by priority, then in order
    Order order;
    int limit = 1;  // chunks at once
    int running = 0;
  };
  struct Device {
    std::array<Engine, kEngineKinds> engines;
    base::CondVar work;
    int idle = 0, woken = 0;  // threads that sleep; those of them that have been woken, or will be
    std::vector<std::thread> threads;
  };
  // Threads to be woken once the lock is released.
  using Wakes = absl::InlinedVector<std::pair<Device*, int>, 2>;
  // The chunk that a thread took.
  struct Claim {
    std::shared_ptr<StreamState> stream;
    Engine* engine = nullptr;
    Task* task = nullptr;
    int chunk = 0;
    int delay = 0;
    bool skip = false;
    bool failed = false;
  };

  void Work(Device& device);
  std::optional<Claim> Take(Device& device);
  static void Execute(Claim& claim);
  void Finish(const Claim& claim, Device& device);
  void Stop();

  std::optional<Claim> TryClaim(Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Claim> TryClaim(Engine& engine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool EndChunk(const Claim& claim, std::unique_ptr<Task>& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Wakes TakeWakes(Device* taker = nullptr) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Wake(const Wakes& wakes);
  absl::StatusOr<std::shared_ptr<StreamState>> AwaitRoom(Stream handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Push(Stream handle, Command command, bool& rang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Append(StreamState& stream, Command command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static std::shared_ptr<Launch> MakeLaunch(std::vector<GraphStep> steps);
  void OfferReady(const Launch& launch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FinishNode(Launch& launch, int32_t node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Advance(std::shared_ptr<StreamState> first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Offer(const std::shared_ptr<StreamState>& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pop(StreamState& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OpenGate(TrySemaphore& gate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Notify(bool rang) {
    if (rang && event_count_) event_count_->Notify();
  }

  // Constant after construction; mu_ guards a Device's members other than its threads.
  penstock::host::EventCount* const event_count_;
  std::vector<std::unique_ptr<Device>> devices_;

  base::Mutex mu_;
  HandleTable<std::shared_ptr<StreamState>> streams_ ABSL_GUARDED_BY(mu_);
  HandleTable<EventState> events_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<StreamState>> turn_ ABSL_GUARDED_BY(mu_);  // streams that Advance has still to look at
  std::vector<int32_t> ready_ ABSL_GUARDED_BY(mu_);  // nodes of one launch, to be offered
  std::vector<Device*> offered_ ABSL_GUARDED_BY(mu_);  // those with new work, perhaps more than once
  // Graphs that have ended, to be destroyed when the lock is released.
  std::vector<std::shared_ptr<Launch>> ended_ ABSL_GUARDED_BY(mu_);
  int64_t queued_ ABSL_GUARDED_BY(mu_) = 0;  // commands in all streams
  int submitters_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  base::CondVar room_;  // signalled when a full stream has room again
  base::CondVar drained_;  // signalled when queued_ becomes 0
};

}  // namespace penstock::driver::host
