// co_await for runs: `absl::Status status = co_await run;` in any coroutine.
//
// If the run has already ended, the coroutine continues immediately. Otherwise a worker thread resumes it when the run
// ends, whether normally, cancelled or abandoned. Until it suspends again, the rules of Run::OnDone callbacks hold for
// it: it must not Wait or Launch; TryLaunch and another co_await are allowed.
//
// Ownership: an awaiting coroutine holds a handle on the run. A coroutine frame must not be destroyed while it awaits.
// Threads:   thread-safe. It costs what OnDone costs and nothing more.
//
// Give co_await a statement of its own: g++ 12 miscompiles it inside &&, || and ?:, whatever is awaited.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <coroutine>
#include <utility>

#include "absl/status/status.h"
#include "penstock/run.h"

namespace penstock {

class RunAwaiter {
 public:
  // Awaits the end of `run`.
  explicit RunAwaiter(Run run) : run_(std::move(run)) {}

  bool await_ready() const { return run_.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) const {
    const Run run = run_;  // OnDone may resume the coroutine and destroy this awaiter's frame before it returns
    run.OnDone([coroutine](const absl::Status&) { coroutine.resume(); });
  }
  absl::Status await_resume() const { return run_.status(); }

 private:
  Run run_;
};

// Makes a run awaitable; `co_await run` returns its final status.
inline RunAwaiter operator co_await(const Run& run) { return RunAwaiter(run); }

}  // namespace penstock
