// Progressable: what the completion thread pushes on when nobody else does: runs, pipelines.
//
// Ownership: counted; the thread holds one count from Watch until `drained`.
// Threads:   all may be called by any thread.
#pragma once

#include <chrono>

namespace penstock::runtime {

class Progressable {
 public:
  virtual void Ref() = 0;
  virtual void Unref() = 0;
  // Does whatever can be done now, without blocking.
  virtual void Advance() = 0;
  // The same again and again, by a thread that does nothing else: where others are at it, it keeps out of their way.
  virtual void Poll() { Advance(); }
  // Nothing is left to be pushed on, for good.
  virtual bool drained() const = 0;
  // Nothing is to be seen of devices: the thread may sleep until it is woken.
  virtual bool idle() const = 0;
  // When to call Advance at the latest.
  virtual std::chrono::steady_clock::time_point due() const = 0;

 protected:
  ~Progressable() = default;
};

}  // namespace penstock::runtime
