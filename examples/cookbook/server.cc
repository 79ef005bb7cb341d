// Cookbook: a server. Many threads use one executable, each request has a deadline, and requests that find every slot
// taken are refused, or wait.
//
// docs/howto/cookbook/server.md explains the program.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include "penstock/ps.h"

constexpr int kN = 4096, kSlots = 4, kClients = 16, kRequests = 25;

struct Scale {
  PS_HOST_DEVICE void operator()(int64_t i, float by, const float* question, float* answer) const {
    answer[i] = by * question[i];
  }
};

// Thread-safe. The graph's buffers are pinned memory of the slots.
class Server {
 public:
  absl::Status Open(ps::Runtime& runtime) {
    ps::Graph graph("scale");
    by_ = graph.Param<float>("by");
    question_ = graph.Input<float>("question", kN, ps::kSlot);
    answer_ = graph.Output<float>("answer", kN, ps::kSlot);
    graph.ParallelFor("scale", kN, Scale{}, by_, ps::Read(question_), ps::Write(answer_));
    PS_ASSIGN_OR_RETURN(exec_, runtime.Compile(graph, {.slots = kSlots}));
    return absl::OkStatus();
  }

  // Answers one request. DeadlineExceeded: it was not done in time, because it waited for a slot, or the device took
  // too long. ResourceExhausted: every slot is taken and it may not `wait`. Afterwards nothing uses the caller's
  // memory.
  absl::Status Answer(float by, std::span<const float> question, std::span<float> answer, ps::Deadline deadline,
                      bool wait) {
    if (deadline.passed()) return absl::DeadlineExceededError("the request came too late");
    PS_ASSIGN_OR_RETURN(ps::Lease slot, wait ? exec_.Acquire(deadline) : exec_.TryAcquire());
    std::ranges::copy(question, slot.span(question_).begin());
    PS_ASSIGN_OR_RETURN(ps::Run run, slot.Launch(exec_.bindings().Set(by_, by), deadline));
    PS_RETURN_IF_ERROR(run.Wait());
    std::ranges::copy(slot.span(answer_), answer.begin());
    return absl::OkStatus();
  }

 private:
  ps::ParamHandle<float> by_;
  ps::BufferHandle<float> question_, answer_;
  ps::Executable exec_;
};

absl::Status Cookbook() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  Server server;
  PS_RETURN_IF_ERROR(server.Open(runtime));

  std::atomic<int> answered = 0, waited = 0;
  const auto client = [&](int number) {
    std::vector<float> question(kN, static_cast<float>(number)), answer(kN);
    for (int r = 0; r < kRequests; ++r) {
      const float by = static_cast<float>(r);
      absl::Status status = server.Answer(by, question, answer, std::chrono::minutes(1), /*wait=*/false);
      if (absl::IsResourceExhausted(status)) {
        ++waited;  // a client that knows another server would ask that one
        status = server.Answer(by, question, answer, std::chrono::minutes(1), /*wait=*/true);
      }
      if (status.ok() && std::ranges::count(answer, by * static_cast<float>(number)) == kN) ++answered;
    }
  };
  std::vector<std::jthread> clients;
  for (int number = 1; number <= kClients; ++number) clients.emplace_back(client, number);
  clients.clear();  // waits for them

  std::vector<float> question(kN), answer(kN);
  const absl::Status late = server.Answer(1, question, answer, std::chrono::seconds(0), /*wait=*/true);
  std::printf("%d requests answered, %d of them after they had waited; one came too late\n", answered.load(),
              waited.load());
  if (answered != kClients * kRequests) return absl::InternalError("some answers are wrong");
  return absl::IsDeadlineExceeded(late) ? absl::OkStatus() : absl::InternalError("the late request was answered");
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
