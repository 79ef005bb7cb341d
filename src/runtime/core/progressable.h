// Progressable: what the completion thread advances if no other thread does: runs, pipelines and transfers of States.
//
// Ownership: counted; the thread holds one count from Watch until `drained`.
// Threads:   any thread may call any method.
#pragma once

#include <chrono>

namespace penstock::runtime {

class Progressable {
 public:
  virtual void Ref() = 0;
  virtual void Unref() = 0;
  // Does everything that can be done now, without blocking.
  virtual void Advance() = 0;
  // Like Advance, called repeatedly by a polling thread; it keeps out of the way of other threads that are at work.
  virtual void Poll() { Advance(); }
  // Nothing is left to advance, for good.
  virtual bool drained() const = 0;
  // Devices have nothing to report: the thread may sleep until it is woken.
  virtual bool idle() const = 0;
  // The latest time to call Advance.
  virtual std::chrono::steady_clock::time_point due() const = 0;

 protected:
  ~Progressable() = default;
};

}  // namespace penstock::runtime
