// SharedLaunching: which thread launches the items of a run queue, where launches take long: the policy alone, without
// thread, lock or clock.
//
// Whoever pushes a pipeline on launches what can begin, itself: nothing is faster where a launch takes a few
// microseconds, and handing over to another thread costs about as much. Where launches take longer than kSlow, one
// thread could not keep several devices fed. So each owner of a queue measures its launches, and where those are slow
// an owner that is none of the queue's submission threads *leaves* what waits to them, and goes on with what else it
// has to do: it fills places, sees runs end, takes items out. They begin it at once; where other devices are better for
// it, they look again a little later.
//
// Nobody may rely on submission threads to come. What has been left for kTooLong is launched by a thread that waits in
// a call of the pipeline and has nothing else to do, or by the completion thread, one item at a time until a submission
// thread comes. (So a thread that pulls items has filled all places before it goes into a launch, and the submission
// threads of the other devices have something to do meanwhile.)
//
//   launches of a queue:  fast  -- mean over 20 us -->  slow  -- mean under 20 us -->  fast
//   items that wait:      nothing left  -- Leave -->  left  -- begun, or Leave(0) -->  nothing left
//                                                      |  after 200 us: anybody may begin them
//
// Threads: NoteLaunch and BeginLaunch by the owner of the queue; Leave with the pipeline's lock held; the rest by any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::runtime {

inline constexpr size_t kCacheLine = 64;

class SharedLaunching {
 public:
  static constexpr std::chrono::nanoseconds kSlow = std::chrono::microseconds(20);
  static constexpr std::chrono::nanoseconds kTooLong = std::chrono::microseconds(200);  // waking a thread takes 50 us

  explicit SharedLaunching(size_t queues) : queues_(queues) {}

  // More than one queue has submission threads. Before that nothing is left to anybody.
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

  // Around a launch: its beginning, by the clock; how long it took.
  void BeginLaunch(size_t queue, int64_t now_ns) { At(queue).launching_ns.store(now_ns, std::memory_order_relaxed); }
  void CancelLaunch(size_t queue) { At(queue).launching_ns.store(0, std::memory_order_relaxed); }
  void NoteLaunch(size_t queue, int64_t took_ns);
  // A queue that has launched nothing yet is as the others are.
  bool IsSlow(size_t queue) const;
  bool AnySlow() const { return slow_.load(std::memory_order_relaxed) > 0; }
  // For how long a launch that is under way goes on. One that has taken longer than usual will as a rule go on for as
  // long again, so nobody waits for one that hangs.
  int64_t UntilLaunched(size_t queue, int64_t now_ns) const;

  // What waits is left to the queue's submission threads, which are to begin it from then on; 0: nothing is left.
  void Leave(size_t queue, int64_t from_ns) {
    if (left_ns(queue) != from_ns) At(queue).left_ns.store(from_ns, std::memory_order_relaxed);
  }
  int64_t left_ns(size_t queue) const { return At(queue).left_ns.load(std::memory_order_relaxed); }
  bool AnyLeft() const;
  // When submission threads look again at items that other devices were better for.
  int64_t NextLook(size_t queue, int64_t now_ns) const;
  // When what is left in any queue will have been so for too long; INT64_MAX: nothing is left. And of one queue.
  int64_t FirstDue() const;
  bool IsDue(size_t queue, int64_t now_ns) const {
    return left_ns(queue) != 0 && now_ns >= left_ns(queue) + kTooLong.count();
  }

 private:
  // Submission threads read left_ns all the time; the owner writes the others at each launch.
  struct Queue {
    alignas(kCacheLine) std::atomic<int64_t> left_ns{0};  // see Leave
    alignas(kCacheLine) std::atomic<int64_t> launch_ns{0};  // how long launches took lately; 0: there was none
    std::atomic<int64_t> launching_ns{0};  // since when one has not returned; 0: there is none
  };
  Queue& At(size_t queue) { return queues_[queue]; }
  const Queue& At(size_t queue) const { return queues_[queue]; }

  bool enabled_ = false;  // constant once the pipeline is made
  std::vector<Queue> queues_;
  std::atomic<int> slow_{0};  // queues whose launches take long; seldom written
};

}  // namespace penstock::runtime
