#include "src/memory/staging.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/copy_box.h"
#include "src/host/progress.h"

namespace penstock::memory {
namespace {

constexpr size_t kUp = 0, kDown = 1;

size_t DirectionOf(const driver::CopyOp& op) { return op.kind == driver::CopyKind::kHostToDevice ? kUp : kDown; }

// A fatal fault comes to light at any later call, and so names no node.
void Fail(const StagedCopy& copy, const absl::Status& status) {
  copy.op.tag.fault->Fail(base::IsFatal(status) ? -1 : copy.op.tag.node, status);
}

class CurrentDevice {
 public:
  CurrentDevice(driver::Driver& driver, int device) : driver_(driver), token_(driver.MakeCurrent(device)) {}
  ~CurrentDevice() { driver_.RestoreCurrent(token_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  driver::Driver& driver_;
  const int token_;
};

}  // namespace

Staging::Staging(driver::Driver& driver, host::Bell& bell, const StagingOptions& options)
    : driver_(driver), bell_(bell), options_(options) {}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(driver::Driver& driver, PinnedPool& pool, host::Bell& bell,
                                                         const StagingOptions& options) {
  std::unique_ptr<Staging> staging(new Staging(driver, bell, options));
  for (int i = 0; i < options.threads; ++i) PENSTOCK_RETURN_IF_ERROR(staging->MakeWorker(pool, i));
  PENSTOCK_RETURN_IF_ERROR(staging->StartThreads());
  return staging;
}

absl::Status Staging::MakeWorker(PinnedPool& pool, int index) {
  auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
  worker.index = index;
  worker.first = index % 2;
  worker.blocks.resize(static_cast<size_t>(options_.blocks_per_thread));
  for (int d = 0; d < driver_.device_count(); ++d) {
    auto& streams = worker.streams.emplace_back();
    for (driver::Stream& stream : streams) {
      PENSTOCK_ASSIGN_OR_RETURN(stream, driver_.CreateStream(d, 0));
    }
  }
  for (size_t b = 0; b < worker.blocks.size(); ++b) {
    Block& block = worker.blocks[b];
    PENSTOCK_ASSIGN_OR_RETURN(block.memory, pool.Allocate(options_.chunk_bytes));
    for (int d = 0; d < driver_.device_count(); ++d) {
      PENSTOCK_ASSIGN_OR_RETURN(driver::Event event, driver_.CreateEvent(d, false));
      block.events.push_back(event);
    }
    worker.free.push_back(b);
  }
  return absl::OkStatus();
}

absl::Status Staging::StartThreads() {
  try {
    for (const auto& worker : workers_) {
      worker->thread = std::thread([this, w = worker.get()] { Work(*w); });
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(std::string("the system refuses a staging thread: ") + error.what() +
                                        "; let this process or its user have more, or use fewer");
  }
  return absl::OkStatus();
}

Staging::~Staging() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    posted_.NotifyAll();
  }
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
    for (const Block& block : worker->blocks) {
      for (const driver::Event event : block.events) driver_.DestroyEvent(event);
    }
    for (const auto& streams : worker->streams) {
      for (const driver::Stream stream : streams) {
        if (stream) driver_.DestroyStream(stream);
      }
    }
  }
}

void Staging::Post(StagedCopy& copy) {
  copy.chunks = Chunks(copy.op, options_.chunk_bytes);
  copy.next = 0;
  copy.left = copy.chunks.count();
  base::MutexLock lock(mu_);
  queues_[DirectionOf(copy.op)].push_back(&copy);
  if (copy.left == 1) {
    posted_.NotifyOne();
  } else {
    posted_.NotifyAll();
  }
}

void Staging::Work(Worker& worker) {
  pthread_setname_np(pthread_self(), ("ps-stage/" + std::to_string(worker.index)).substr(0, 15).c_str());
  do {
    while (Step(worker)) {
    }
    while (worker.free.size() < worker.blocks.size()) {
      host::WaitForProgress(bell_, driver_.rings(), host::TimePoint::max(), [&] { return Step(worker); });
    }
  } while (Sleep());
}

bool Staging::Sleep() {
  base::MutexLock lock(mu_);
  while (queues_[kUp].empty() && queues_[kDown].empty()) {
    if (stopping_) return false;
    posted_.Wait(mu_);
  }
  return true;
}

bool Staging::Step(Worker& worker) {
  const bool ended_up = EndOldest(worker, kUp), ended_down = EndOldest(worker, kDown);
  return BeginNext(worker) || ended_up || ended_down;
}

bool Staging::EndOldest(Worker& worker, size_t direction) {
  std::vector<size_t>& under_way = worker.under_way[direction];
  if (under_way.empty()) return false;
  const size_t index = under_way.front();
  Block& block = worker.blocks[index];
  if (!IsComplete(worker, block)) return false;
  under_way.erase(under_way.begin());
  StagedCopy& copy = *block.copy;
  if (direction == kDown && !copy.op.tag.fault->failed()) {
    driver::CopyOnHost(OutOfBlock(block.chunk, block.memory.data()));
  }
  worker.free.push_back(index);
  EndChunks(copy, 1);
  return true;
}

// A device that answers with a fatal error runs nothing any more. One that refuses for another reason is asked again:
// without its answer nobody knows when the memory is free.
bool Staging::IsComplete(Worker& worker, Block& block) {
  StagedCopy& copy = *block.copy;
  const auto device = static_cast<size_t>(copy.device);
  const CurrentDevice current(driver_, copy.device);
  absl::Status status;
  if (!block.recorded) {
    status = driver_.Record(block.events[device], worker.streams[device][DirectionOf(copy.op)]);
    block.recorded = status.ok();
  }
  bool complete = false;
  if (status.ok()) {
    const absl::StatusOr<bool> answer = driver_.Query(block.events[device]);
    status = answer.status();
    complete = answer.ok() && *answer;
  }
  if (status.ok()) return complete;
  Fail(copy, status);
  bell_.Ring();  // to look again: nothing else may ring
  return base::IsFatal(status);
}

bool Staging::BeginNext(Worker& worker) {
  if (worker.free.empty()) return false;
  size_t chunk = 0, direction = 0;
  StagedCopy* copy = Take(worker, &chunk, &direction);
  if (copy == nullptr) return false;
  const size_t index = worker.free.back();
  Block& block = worker.blocks[index];
  block.copy = copy;
  block.chunk = copy->chunks[chunk];
  block.recorded = false;
  if (const absl::Status status = Submit(worker, block, direction); !status.ok()) {
    Fail(*copy, status);
    EndChunks(*copy, 1);
    return true;
  }
  worker.free.pop_back();
  worker.under_way[direction].push_back(index);
  return true;
}

absl::Status Staging::Submit(Worker& worker, Block& block, size_t direction) {
  const int device = block.copy->device;
  const driver::Stream stream = worker.streams[static_cast<size_t>(device)][direction];
  if (direction == kUp) driver::CopyOnHost(IntoBlock(block.chunk, block.memory.data()));
  const driver::CopyOp op =
      direction == kUp ? OutOfBlock(block.chunk, block.memory.data()) : IntoBlock(block.chunk, block.memory.data());
  const CurrentDevice current(driver_, device);
  PENSTOCK_RETURN_IF_ERROR(driver_.Copy(stream, op));
  const absl::Status recorded = driver_.Record(block.events[static_cast<size_t>(device)], stream);
  block.recorded = recorded.ok();
  if (!recorded.ok()) Fail(*block.copy, recorded);  // IsComplete tries again
  return absl::OkStatus();
}

// The next chunk to begin; null where there is none. What is left of copies whose run has failed is ended here.
StagedCopy* Staging::Take(Worker& worker, size_t* chunk, size_t* direction) {
  for (size_t i = 0; i < 2; ++i) {
    *direction = (static_cast<size_t>(worker.first) + i) % 2;
    StagedCopy *copy = nullptr, *given_up = nullptr;
    size_t skipped = 0;
    {
      base::MutexLock lock(mu_);
      Queue& queue = queues_[*direction];
      if (queue.empty()) continue;
      copy = queue.front();
      if (copy->op.tag.fault->failed()) {
        given_up = copy;
        skipped = copy->chunks.count() - copy->next;
        copy->next = copy->chunks.count();
      } else {
        *chunk = copy->next++;
      }
      if (copy->next == copy->chunks.count()) queue.erase(queue.begin());
    }
    if (threads() == 1) worker.first = 1 - static_cast<int>(*direction);  // in turn
    if (given_up == nullptr) return copy;
    EndChunks(*given_up, skipped);
    return Take(worker, chunk, direction);
  }
  return nullptr;
}

void Staging::EndChunks(StagedCopy& copy, size_t count) {
  {
    base::MutexLock lock(mu_);
    copy.left -= count;
    if (copy.left > 0) return;
  }
  copy.done(copy.context, copy.arg);
}

}  // namespace penstock::memory
