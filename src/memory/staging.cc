#include "src/memory/staging.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/copy_box.h"
#include "src/host/progress.h"
#include "src/memory/streaming_copy.h"

namespace penstock::memory {
namespace {

// Of copies on the way out, so that the link never waits; more would be written to memory before they are looked at.
constexpr size_t kBytesUnderWay = size_t{16} << 20, kLeastUnderWay = 4, kMostUnderWay = 16;
constexpr size_t kWokenAtOnce = 4;
constexpr int kPausesBetweenPolls = 40;  // some microseconds: asking more often holds up those who submit
constexpr std::chrono::microseconds kSpin{100};

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

StagingOptions Complete(StagingOptions options) {
  options.block_bytes = std::max(options.block_bytes, options.chunk_bytes);
  if (options.blocks <= 0) options.blocks = 2 * options.threads + static_cast<int>(kLeastUnderWay);
  return options;
}

}  // namespace

Staging::Staging(driver::Driver& driver, host::Bell& bell, const StagingOptions& options)
    : driver_(driver), bell_(bell), options_(Complete(options)) {}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(driver::Driver& driver, PinnedPool& pool, host::Bell& bell,
                                                         const StagingOptions& options) {
  std::unique_ptr<Staging> staging(new Staging(driver, bell, options));
  PENSTOCK_RETURN_IF_ERROR(staging->MakeResources(pool));
  PENSTOCK_RETURN_IF_ERROR(staging->StartThreads());
  return staging;
}

absl::Status Staging::MakeResources(PinnedPool& pool) {
  const int devices = driver_.device_count();
  for (int d = 0; d < devices; ++d) {
    for (Lane& lane : *lanes_.emplace_back(std::make_unique<Lanes>())) {
      PENSTOCK_ASSIGN_OR_RETURN(lane.stream, driver_.CreateStream(d, 0));
    }
  }
  base::MutexLock lock(mu_);  // nobody else is there yet: for the analysis
  blocks_.resize(static_cast<size_t>(options_.blocks));
  for (size_t b = 0; b < blocks_.size(); ++b) {
    PENSTOCK_ASSIGN_OR_RETURN(blocks_[b].memory, pool.Allocate(options_.block_bytes));
    for (int d = 0; d < devices; ++d) {
      PENSTOCK_ASSIGN_OR_RETURN(driver::Event event, driver_.CreateEvent(d, false));
      blocks_[b].events.push_back(event);
    }
    free_.push_back(b);
  }
  return absl::OkStatus();
}

absl::Status Staging::StartThreads() {
  try {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this, i] { Work(i); });
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
  bell_.Ring();
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

// Chunks of less than a block where a copy is too small to give every thread one.
size_t Staging::ChunkBytes(const driver::CopyOp& op) const {
  const size_t share = op.width * op.height * op.depth / static_cast<size_t>(options_.threads);
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
  busy_.fetch_add(1, std::memory_order_relaxed);
  {
    base::MutexLock lock(mu_);
    queues_[DirectionOf(copy)].push_back(&copy);
    NoteChange();
    Wake(std::min<size_t>(copy.left, kWokenAtOnce));
  }
  if (driver_.rings()) bell_.Ring();  // for the thread that watches
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
      Wake(1);  // who comes behind it may have been held up
    }
    while (copy.touched_by > 0) untouched_.Wait(mu_);
  }
  if (driver_.rings()) bell_.Ring();
  if (skipped > 0) EndChunks(copy, skipped);
}

void Staging::Wake(size_t threads) {
  for (threads = std::min(threads, asleep_); threads > 0; --threads) posted_.NotifyOne();
}

void Staging::Work(int index) {
  pthread_setname_np(pthread_self(), ("ps-stage/" + std::to_string(index)).substr(0, 15).c_str());
  Worker self{index % 3 == 1 ? kDown : kUp};
  do {
    while (Step(self)) {
      if (options_.threads == 1) self.first = self.first == kUp ? kDown : kUp;
    }
  } while (Rest(self));
}

// Until there may be something to do, then true; false: the thread is to end. One thread alone watches what is under
// way; the others spin for a little while, since waking takes longer than a chunk does, and sleep.
bool Staging::Rest(Worker& self) {
  if (!self.watches && !driver_.rings() && Spin()) return true;
  {
    base::MutexLock lock(mu_);
    for (;;) {
      if (CanBegin(kUp) || CanBegin(kDown)) return true;
      if (self.watches || (!watched_ && busy_.load(std::memory_order_relaxed) > 0)) break;
      if (stopping_) return false;
      ++asleep_;
      posted_.Wait(mu_);
      --asleep_;
    }
    self.watches = watched_ = true;
    watched_hint_.store(true, std::memory_order_relaxed);
  }
  driver_.rings() ? AwaitRing(self) : Poll(self);
  return true;
}

bool Staging::Spin() {
  const host::TimePoint until = std::chrono::steady_clock::now() + kSpin;
  spinning_.fetch_add(1, std::memory_order_relaxed);
  bool found = false;
  while (!found && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < kPausesBetweenPolls; ++i) host::CpuPause();
    const bool unwatched = busy_.load(std::memory_order_relaxed) > 0 && !watched_hint_.load(std::memory_order_relaxed);
    found = unwatched || can_begin_.load(std::memory_order_relaxed);
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  return found && can_begin_.load(std::memory_order_relaxed);
}

void Staging::AwaitRing(Worker& self) {
  host::WaitForProgress(bell_, true, host::TimePoint::max(),
                        [&] { return Step(self) || busy_.load(std::memory_order_acquire) == 0; });
  StopWatching(self);
}

void Staging::Poll(Worker& self) {
  host::TimePoint idle_since{};
  for (;;) {
    for (int i = 0; i < kPausesBetweenPolls; ++i) host::CpuPause();
    if (Step(self)) return;
    if (busy_.load(std::memory_order_acquire) > 0) {
      idle_since = {};
      continue;
    }
    const host::TimePoint now = std::chrono::steady_clock::now();
    if (idle_since == host::TimePoint{}) idle_since = now;
    if (now >= idle_since + host::kPollBeforeSleep) return StopWatching(self);
  }
}

// Who has found something to do leaves the watch to another: what it does takes long.
void Staging::StopWatching(Worker& self) {
  if (!self.watches) return;
  self.watches = false;
  base::MutexLock lock(mu_);
  watched_ = false;
  watched_hint_.store(false, std::memory_order_relaxed);
  if (busy_.load(std::memory_order_relaxed) > 0 && spinning_.load(std::memory_order_relaxed) == 0) Wake(1);
}

bool Staging::CanBegin(Direction direction) const {
  const Queue& queue = queues_[direction];
  if (queue.empty()) return false;
  if (queue.front()->op.tag.fault->failed()) return true;  // to give it up
  const size_t most = std::max<size_t>(1, blocks_.size() * 2 / 3);  // the rest is for the other direction
  if (free_.empty() || taken_[direction] >= most) return false;
  return direction == kUp || downloads_under_way_ < queue.front()->most_under_way * lanes_.size();
}

void Staging::NoteChange() { can_begin_.store(CanBegin(kUp) || CanBegin(kDown), std::memory_order_relaxed); }

bool Staging::Step(Worker& self) {
  if (self.first == kUp) return Fill(self) || Empty(self) || Retire(self);
  return Empty(self) || Fill(self) || Retire(self);
}

// One chunk on its way in.
bool Staging::Fill(Worker& self) {
  size_t index = 0;
  if (!Begin(kUp, &index)) return false;
  StopWatching(self);
  Block& block = blocks_[index];
  driver::CopyOnHost(IntoBlock(block.chunk, block.memory.data()));
  EndTouch(*block.copy);
  Submit(index, kUp);
  return true;
}

// Keeps copies to blocks under way, and empties one that has come.
bool Staging::Empty(Worker& self) {
  bool moved = false;
  size_t index = 0;
  while (Begin(kDown, &index)) moved = Submit(index, kDown) || moved;
  if (!TakeComplete(self, kDown, &index)) return moved;
  StopWatching(self);
  Block& block = blocks_[index];
  StagedCopy& copy = *block.copy;
  if (BeginTouch(copy)) {
    StreamingCopy(OutOfBlock(block.chunk, block.memory.data()));
    EndTouch(copy);
  }
  GiveBack(index, kDown);
  EndChunks(copy, 1);
  return true;
}

// Blocks whose way in has ended.
bool Staging::Retire(Worker& self) {
  size_t index = 0;
  if (!TakeComplete(self, kUp, &index)) return false;
  StagedCopy& copy = *blocks_[index].copy;
  GiveBack(index, kUp);
  if (EndChunks(copy, 1)) StopWatching(self);  // it has done whatever followed
  return true;
}

// The next chunk of a direction, with a block for it. What is left of copies whose run has failed is ended here.
bool Staging::Begin(Direction direction, size_t* index) {
  if (!can_begin_.load(std::memory_order_relaxed)) return false;
  StagedCopy* given_up = nullptr;
  size_t skipped = 0;
  {
    base::MutexLock lock(mu_);
    if (!CanBegin(direction)) return false;
    Queue& queue = queues_[direction];
    StagedCopy& copy = *queue.front();
    if (copy.op.tag.fault->failed()) {
      given_up = &copy;
      skipped = copy.chunks.count() - copy.next;
      queue.erase(queue.begin());
    } else {
      *index = Take(direction, copy);
      if (copy.next == copy.chunks.count()) queue.erase(queue.begin());
    }
    NoteChange();
    if (can_begin_.load(std::memory_order_relaxed)) Wake(1);  // who wakes wakes another while there is work
  }
  if (given_up == nullptr) return true;
  EndChunks(*given_up, skipped);
  return false;
}

size_t Staging::Take(Direction direction, StagedCopy& copy) {
  const size_t index = free_.back();
  free_.pop_back();
  ++taken_[direction];
  downloads_under_way_ += direction == kDown;
  copy.touched_by += direction == kUp;  // to fill it
  blocks_[index].copy = &copy;
  blocks_[index].chunk = copy.chunks[copy.next++];
  return index;
}

// False: nobody wants the bytes any more.
bool Staging::BeginTouch(StagedCopy& copy) {
  base::MutexLock lock(mu_);
  if (copy.withdrawn || copy.op.tag.fault->failed()) return false;
  ++copy.touched_by;
  return true;
}

void Staging::EndTouch(StagedCopy& copy) {
  base::MutexLock lock(mu_);
  if (--copy.touched_by == 0 && copy.withdrawn) untouched_.NotifyAll();
}

// False: the device refuses, and the chunk has ended.
bool Staging::Submit(size_t index, Direction direction) {
  Block& block = blocks_[index];
  StagedCopy& copy = *block.copy;
  const auto device = static_cast<size_t>(copy.device);
  Lane& lane = (*lanes_[device])[direction];
  const driver::CopyOp op =
      direction == kUp ? OutOfBlock(block.chunk, block.memory.data()) : IntoBlock(block.chunk, block.memory.data());
  const CurrentDevice current(driver_, copy.device);
  {
    base::MutexLock lock(lane.mu);
    absl::Status status = driver_.Copy(lane.stream, op);
    if (status.ok()) {
      lane.under_way.push_back(index);
      lane.count.fetch_add(1, std::memory_order_relaxed);
      status = driver_.Record(block.events[device], lane.stream);
      block.recorded = status.ok();
      if (!status.ok()) Fail(copy, status);  // IsComplete tries again
      return true;
    }
    Fail(copy, status);
  }
  NoteArrival(direction);
  GiveBack(index, direction);
  EndChunks(copy, 1);
  return false;
}

bool Staging::Enter(Lane& lane, bool waits) {
  if (!waits) return lane.mu.TryLock();
  lane.mu.Lock();
  return true;
}

// The oldest chunk under way of a direction, if it is complete. A lane that somebody else looks at is passed over, but
// not by who watches: the other may have looked before the copy ended, and the watch after the bell rang for it.
bool Staging::TakeComplete(const Worker& self, Direction direction, size_t* index) {
  for (const auto& lanes : lanes_) {
    Lane& lane = (*lanes)[direction];
    if (lane.count.load(std::memory_order_relaxed) == 0 || !Enter(lane, self.watches)) continue;
    const bool found = !lane.under_way.empty() && IsComplete(blocks_[lane.under_way.front()], lane);
    if (found) {
      *index = lane.under_way.front();
      lane.under_way.erase(lane.under_way.begin());
      lane.count.fetch_sub(1, std::memory_order_relaxed);
    }
    lane.mu.Unlock();
    if (found) NoteArrival(direction);
    if (found) return true;
  }
  return false;
}

// A device that answers with a fatal error runs nothing any more. One that refuses for another reason is asked again:
// without its answer nobody knows when the memory is free.
bool Staging::IsComplete(Block& block, const Lane& lane) {
  StagedCopy& copy = *block.copy;
  const driver::Event event = block.events[static_cast<size_t>(copy.device)];
  const CurrentDevice current(driver_, copy.device);
  absl::Status status;
  if (!block.recorded) {
    status = driver_.Record(event, lane.stream);
    block.recorded = status.ok();
  }
  bool complete = false;
  if (status.ok()) {
    const absl::StatusOr<bool> answer = driver_.Query(event);
    status = answer.status();
    complete = answer.ok() && *answer;
  }
  if (status.ok()) return complete;
  Fail(copy, status);
  bell_.Ring();  // to look again: nothing else may ring
  return base::IsFatal(status);
}

void Staging::NoteArrival(Direction direction) {
  if (direction == kUp) return;
  base::MutexLock lock(mu_);
  --downloads_under_way_;
  NoteChange();
}

void Staging::GiveBack(size_t index, Direction direction) {
  base::MutexLock lock(mu_);
  free_.push_back(index);
  --taken_[direction];
  NoteChange();
}

// Whether the copy has ended with them.
bool Staging::EndChunks(StagedCopy& copy, size_t count) {
  {
    base::MutexLock lock(mu_);
    copy.left -= count;
    if (copy.left > 0) return false;
  }
  busy_.fetch_sub(1, std::memory_order_release);
  if (driver_.rings()) bell_.Ring();  // for the thread that watches
  copy.done(copy.context, copy.arg);
  return true;
}

}  // namespace penstock::memory
