#include "src/memory/staging.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/thread.h"
#include "src/driver/copy_box.h"
#include "src/host/progress.h"
#include "src/memory/streaming_copy.h"

namespace penstock::memory {
namespace {

// For downloads: enough that the link never waits; more would reach memory before it is read.
constexpr size_t kBytesUnderWay = size_t{16} << 20, kLeastUnderWay = 4, kMostUnderWay = 8;
constexpr size_t kBlocksToFill = 2;  // per thread
constexpr int kFewThreads = 3;
constexpr size_t kWokenAtOnce = 4;
constexpr int kPausesBetweenLooks = 40;  // a few microseconds
constexpr std::chrono::microseconds kSpin{100};  // longer than waking a thread takes

StagingOptions Complete(StagingOptions options) {
  options.block_bytes = std::max(options.block_bytes, options.chunk_bytes);
  return options;
}

}  // namespace

Staging::Staging(driver::Driver& driver, host::EventCount& event_count, const StagingOptions& options)
    : driver_(driver),
      event_count_(event_count),
      options_(Complete(options)),
      feeder_copies_(options.threads <= kFewThreads) {}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(driver::Driver& driver, PinnedPool& pool,
                                                         host::EventCount& event_count, const StagingOptions& options) {
  std::unique_ptr<Staging> staging(new Staging(driver, event_count, options));
  PENSTOCK_RETURN_IF_ERROR(staging->MakeResources(pool));
  PENSTOCK_RETURN_IF_ERROR(staging->StartThreads());
  return staging;
}

absl::Status Staging::MakeResources(PinnedPool& pool) {
  for (int d = 0; d < driver_.device_count(); ++d) {
    for (Lane& lane : *lanes_.emplace_back(std::make_unique<Lanes>())) {
      PENSTOCK_ASSIGN_OR_RETURN(lane.stream, driver_.CreateStream(d, 0));
    }
  }
  const auto copiers = static_cast<size_t>(options_.threads - (feeder_copies_ ? 0 : 1));
  const size_t to_fill = kBlocksToFill * copiers, to_empty = copiers / 2 + kMostUnderWay;
  blocks_.reserve(to_fill + to_empty);
  for (size_t b = 0; b < to_fill + to_empty; ++b) PENSTOCK_RETURN_IF_ERROR(MakeBlock(pool));
  base::MutexLock lock(mu_);  // no other user exists yet; needed for the analysis
  workers_.resize(copiers);
  signals_.resize(copiers);
  for (size_t b = 0; b < to_fill; ++b) {
    blocks_[b].owner = b % copiers;
    workers_[b % copiers].free.push_back(b);
    signals_[b % copiers].free.fetch_add(1, std::memory_order_relaxed);
  }
  for (size_t b = to_fill; b < blocks_.size(); ++b) free_down_.push_back(b);
  for (std::vector<size_t>* list : {&filled_, &external_deps_met_, &to_submit_}) list->reserve(blocks_.size());
  for (const auto& lanes : lanes_) {
    for (Lane& lane : *lanes) lane.under_way.reserve(blocks_.size());
  }
  return absl::OkStatus();
}

absl::Status Staging::MakeBlock(PinnedPool& pool) {
  Block& block = blocks_.emplace_back();
  PENSTOCK_ASSIGN_OR_RETURN(block.memory, pool.Allocate(options_.block_bytes, options_.node));
  for (int d = 0; d < driver_.device_count(); ++d) {
    PENSTOCK_ASSIGN_OR_RETURN(driver::Event event, driver_.CreateEvent(d, false));
    block.events.push_back(event);
  }
  return absl::OkStatus();
}

absl::Status Staging::StartThreads() {
  const size_t offset = feeder_copies_ ? 0 : 1;
  try {
    for (int t = 0; t < options_.threads; ++t) {
      threads_.push_back(base::StartThread("ps-stage/" + std::to_string(t), [this, t, offset] {
        options_.begin(t);
        t == 0 ? Feed() : Copy(static_cast<size_t>(t) - offset);
      }));
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
    feed_.NotifyOne();
    for (Signal& signal : signals_) signal.wake.NotifyOne();
  }
  for (std::thread& thread : threads_) thread.join();
  for (const Block& block : blocks_) {
    for (const driver::Event event : block.events) driver_.DestroyEvent(event);
  }
  for (const auto& lanes : lanes_) {
    for (const Lane& lane : *lanes) {
      if (lane.stream) driver_.DestroyStream(lane.stream);
    }
  }
}

// Chunks are smaller than a block if the copy is too small to give every thread one.
size_t Staging::ChunkBytes(const driver::CopyOp& op) const {
  const size_t share = op.width * op.height * op.depth / signals_.size();
  return std::clamp(share, options_.chunk_bytes, options_.block_bytes);
}

Staging::Direction Staging::DirectionOf(const StagedCopy& copy) {
  return copy.op.kind == driver::CopyKind::kHostToDevice ? kUp : kDown;
}

void Staging::Post(StagedCopy& copy) {
  const size_t chunk_bytes = ChunkBytes(copy.op);
  copy.chunks = Chunks(copy.op, chunk_bytes);
  copy.next = 0;
  copy.left = copy.chunks.count();
  copy.withdrawn = false;
  copy.most_under_way = std::clamp(kBytesUnderWay / chunk_bytes, kLeastUnderWay, kMostUnderWay);
  {
    base::MutexLock lock(mu_);
    busy_.fetch_add(1, std::memory_order_relaxed);
    queues_[DirectionOf(copy)].push_back(&copy);
    NoteChange();
    feed_.NotifyOne();
    Wake(kWokenAtOnce);
  }
  NotifySubmissionThread();
}

void Staging::Withdraw(StagedCopy& copy) {
  size_t skipped = 0;
  {
    base::MutexLock lock(mu_);
    copy.withdrawn = true;
    Queue& queue = queues_[DirectionOf(copy)];
    if (const auto at = std::find(queue.begin(), queue.end(), &copy); at != queue.end()) {
      skipped = copy.chunks.count() - copy.next;
      queue.erase(at);
      NoteChange();
    }
    while (copy.touched_by > 0) untouched_.Wait(mu_);
  }
  NotifySubmissionThread();
  if (skipped > 0) EndSkipped(copy, skipped);
}

// The first copy of a queue if its run has failed; the rest of that copy is not begun.
StagedCopy* Staging::TakeFailed(Direction direction, size_t* skipped) {
  Queue& queue = queues_[direction];
  if (queue.empty() || !queue.front()->op.tag.fault->failed()) return nullptr;
  StagedCopy* const copy = queue.front();
  *skipped = copy->chunks.count() - copy->next;
  queue.erase(queue.begin());
  return copy;
}

// Returns whether the copy has ended with this chunk.
bool Staging::EndOne(StagedCopy& copy) { return --copy.left == 0; }

void Staging::EndSkipped(StagedCopy& copy, size_t count) {
  {
    base::MutexLock lock(mu_);
    copy.left -= count;
    if (copy.left > 0) return;
  }
  End(copy);
}

void Staging::End(StagedCopy& copy) {
  busy_.fetch_sub(1, std::memory_order_release);
  NotifySubmissionThread();
  copy.done(copy.context, copy.arg);
}

void Staging::NoteChange() {
  can_feed_.store(!filled_.empty() || CanBeginDown(), std::memory_order_relaxed);
  can_fill_.store(!queues_[kUp].empty(), std::memory_order_relaxed);
  can_empty_.store(!external_deps_met_.empty(), std::memory_order_relaxed);
}

void Staging::Wake(size_t most) {
  for (size_t w = 0; w < workers_.size() && most > 0 && asleep_ > 0; ++w) {
    if (!workers_[w].asleep || !CanCopy(w)) continue;
    workers_[w].asleep = false;
    --asleep_;
    --most;
    signals_[w].wake.NotifyOne();
  }
}

void Staging::NotifySubmissionThread() {
  if (driver_.notifies_completion()) event_count_.Notify();
}

void Staging::Copy(size_t w) {
  do {
    while (CopyOne(w)) {
    }
  } while (AwaitCopy(w));
}

// Waits until there may be something to copy, then returns true; false if the thread must end.
bool Staging::AwaitCopy(size_t w) {
  if (!driver_.notifies_completion() && Spin(w)) return true;
  base::MutexLock lock(mu_);
  while (!CanCopy(w)) {
    if (stopping_) return false;
    workers_[w].asleep = true;
    ++asleep_;
    signals_[w].wake.Wait(mu_);
    if (workers_[w].asleep) --asleep_;  // woken by no particular thread
    workers_[w].asleep = false;
  }
  return true;
}

bool Staging::Spin(size_t w) {
  const host::TimePoint until = std::chrono::steady_clock::now() + kSpin;
  spinning_.fetch_add(1, std::memory_order_relaxed);
  bool found = false;
  while (!found && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < kPausesBetweenLooks; ++i) host::CpuPause();
    found = MayCopy(w);
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  return found;
}

bool Staging::MayCopy(size_t w) const {
  return can_empty_.load(std::memory_order_relaxed) ||
         (can_fill_.load(std::memory_order_relaxed) && signals_[w].free.load(std::memory_order_relaxed) > 0);
}

bool Staging::CanCopy(size_t w) const {
  return !external_deps_met_.empty() || (!queues_[kUp].empty() && !workers_[w].free.empty());
}

// Copies one chunk from the user's memory into a block, or back from a block.
bool Staging::CopyOne(size_t w) {
  if (!MayCopy(w)) return false;
  Direction direction = kUp;
  size_t index = 0, skipped = 0;
  StagedCopy* given_up = nullptr;
  {
    base::MutexLock lock(mu_);
    if (!CanCopy(w)) return false;
    direction = NextFor(w);
    if (direction == kUp) given_up = TakeFailed(kUp, &skipped);
    if (given_up == nullptr) index = direction == kUp ? BeginFill(w) : BeginEmpty();
    NoteChange();
    Wake(1);  // each woken thread wakes another while there is work
  }
  if (given_up != nullptr) {
    EndSkipped(*given_up, skipped);
    return true;
  }
  const Block& block = blocks_[index];
  if (direction == kUp) {
    driver::CopyOnHost(IntoBlock(block.chunk, block.memory.data()));
  } else if (block.wanted) {
    StreamingCopy(OutOfBlock(block.chunk, block.memory.data()));
  }
  Copied(index, direction);
  return true;
}

Staging::Direction Staging::NextFor(size_t w) {
  const bool can_fill = !queues_[kUp].empty() && !workers_[w].free.empty();
  if (external_deps_met_.empty() || !can_fill) return can_fill ? kUp : kDown;
  if (workers_.size() == 1) return turn_ = turn_ == kUp ? kDown : kUp;
  return w % 3 == 1 ? kDown : kUp;
}

size_t Staging::BeginFill(size_t w) {
  Queue& queue = queues_[kUp];
  StagedCopy& copy = *queue.front();
  const size_t index = workers_[w].free.back();  // the block filled last is still in the caches
  workers_[w].free.pop_back();
  signals_[w].free.fetch_sub(1, std::memory_order_relaxed);
  Block& block = blocks_[index];
  block.copy = &copy;
  block.chunk = copy.chunks[copy.next++];
  block.wanted = true;
  ++copy.touched_by;
  if (copy.next == copy.chunks.count()) queue.erase(queue.begin());
  return index;
}

size_t Staging::BeginEmpty() {
  const size_t index = external_deps_met_.front();
  external_deps_met_.erase(external_deps_met_.begin());
  Block& block = blocks_[index];
  block.wanted = !block.copy->withdrawn && !block.copy->op.tag.fault->failed();
  if (block.wanted) ++block.copy->touched_by;
  return index;
}

void Staging::Copied(size_t index, Direction direction) {
  Block& block = blocks_[index];
  StagedCopy& copy = *block.copy;
  bool ended = false;
  {
    base::MutexLock lock(mu_);
    if (block.wanted && --copy.touched_by == 0 && copy.withdrawn) untouched_.NotifyAll();
    if (direction == kUp) {
      filled_.push_back(index);
    } else {
      free_down_.push_back(index);
      ended = EndOne(copy);
    }
    NoteChange();
  }
  NotifySubmissionThread();
  if (ended) End(copy);
}

}  // namespace penstock::memory
