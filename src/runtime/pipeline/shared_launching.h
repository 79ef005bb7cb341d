// SharedLaunching: decides which thread launches the items of a run queue when launches are slow: the policy alone,
// without thread, lock or clock.
//
// The thread that advances a pipeline normally launches what can begin itself: for launches of a few microseconds
// nothing is faster, since handing over to another thread costs about as much. With launches longer than kSlow, one
// thread could not keep several devices busy. So each owner of a queue measures its launches; if they are slow, an
// owner that is none of the queue's submission threads *leaves* waiting items to them and continues with its other
// work: it fills window slots, sees runs end, takes items out. The submission threads begin those items immediately or,
// if other devices are better for an item, look again a little later.
//
// Submission threads need not come. What has been left for kTooLong is launched by a thread that waits in a call of the
// pipeline and has nothing else to do, or by the completion thread, one item at a time until a submission thread comes.
// (A thread that pulls items thus fills all window slots before it enters a launch, and the submission threads of the
// other devices have work meanwhile.)
//
//   launches of a queue:  fast  -- mean over 20 us -->  slow  -- mean under 20 us -->  fast
//   waiting items:        nothing left  -- Leave -->  left  -- begun, or Leave(0) -->  nothing left
//                                                      |  after 200 us: any thread may begin them
//
// Threads: the queue's owner calls NoteLaunch and BeginLaunch; Leave is called with the pipeline's lock held; any
//          thread may call the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/runtime/pipeline/activity.h"
#include "src/runtime/pipeline/tuning.h"

namespace penstock::runtime {

class SharedLaunching {
 public:
  explicit SharedLaunching(size_t queues) : queues_(queues) {}

  // More than one queue has submission threads. Before this call nothing is left to them.
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

  // BeginLaunch and NoteLaunch surround a launch with the time at which it began and the time that it took.
  void BeginLaunch(size_t queue, int64_t now_ns) { At(queue).launching_ns.store(now_ns, std::memory_order_relaxed); }
  void CancelLaunch(size_t queue) { At(queue).launching_ns.store(0, std::memory_order_relaxed); }
  void NoteLaunch(size_t queue, int64_t took_ns);
  // A queue that has launched nothing yet counts as slow if any queue is.
  bool IsSlow(size_t queue) const;
  bool AnySlow() const { return slow_.load(std::memory_order_relaxed) > 0; }
  // How long a launch in progress is expected to continue. One that has taken longer than usual is expected to take as
  // long again, so that no item waits for a launch that hangs.
  int64_t UntilLaunched(size_t queue, int64_t now_ns) const;

  // Leaves waiting items to the queue's submission threads, to begin from `from_ns` on; 0: nothing is left.
  void Leave(size_t queue, int64_t from_ns) {
    if (left_ns(queue) != from_ns) At(queue).left_ns.store(from_ns, std::memory_order_relaxed);
  }
  int64_t left_ns(size_t queue) const { return At(queue).left_ns.load(std::memory_order_relaxed); }
  const std::atomic<int64_t>& left(size_t queue) const { return At(queue).left_ns; }
  bool AnyLeft() const;
  // When submission threads look again at items for which other devices were better.
  int64_t NextLook(size_t queue, int64_t now_ns) const;
  // FirstDue: when what is left in any queue will have been left for too long; INT64_MAX if nothing is left. IsDue:
  // whether it has been so in one queue.
  int64_t FirstDue() const;
  bool IsDue(size_t queue, int64_t now_ns) const {
    return left_ns(queue) != 0 && now_ns >= left_ns(queue) + tuning::kTooLong.count();
  }

 private:
  // Submission threads read left_ns all the time; the owner writes the others at each launch.
  struct Queue {
    alignas(kCacheLine) std::atomic<int64_t> left_ns{0};  // see Leave
    alignas(kCacheLine) std::atomic<int64_t> launch_ns{0};  // recent duration of launches; 0: there were none
    std::atomic<int64_t> launching_ns{0};  // when the launch in progress began; 0: there is none
  };
  Queue& At(size_t queue) { return queues_[queue]; }
  const Queue& At(size_t queue) const { return queues_[queue]; }

  bool enabled_ = false;  // constant once the pipeline is made
  std::vector<Queue> queues_;
  std::atomic<int> slow_{0};  // queues with slow launches; seldom written
};

}  // namespace penstock::runtime
