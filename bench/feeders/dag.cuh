// The random DAG submitted by hand, with streams and events: by one thread, and split over several, each of which feeds
// some of the streams and waits for nothing but that another has submitted the record of an event.
//
// Threads: Run by the one that made it.
#pragma once

#include <atomic>
#include <vector>

#include "bench/random_dag/work.cuh"
#include "crew.cuh"
#include "cuda_check.cuh"

namespace bench {

class EagerDag {
 public:
  // A task runs on the stream of its column, modulo `streams`. `clocks`: waits that others imply are left out.
  EagerDag(const Dag& dag, uint32_t* words, int streams, bool clocks, Crew& crew)
      : crew_(crew), recorded_(static_cast<size_t>(dag.tasks())) {
    for (int s = 0; s < streams; ++s) streams_.push_back(MakeStream());
    for (int s = 0; s < streams; ++s) ends_.push_back(MakeEvent());
    arguments_.reserve(static_cast<size_t>(dag.tasks()));
    std::vector<std::vector<int>> clock;  // of each task: how many of each stream's it knows to be done
    std::vector<std::vector<int>> now(streams_.size(), std::vector<int>(streams_.size()));
    std::vector<int> count(streams_.size());
    std::vector<bool> awaited(static_cast<size_t>(dag.tasks()));
    std::vector<int> place;  // of each task: the how manieth of its stream it is
    for (int t = 0; t < dag.tasks(); ++t) {
      const auto s = static_cast<size_t>(t % kWidth % streams);
      Task task{static_cast<int>(s)};
      for (const int b : dag.Before(t)) {
        const auto from = static_cast<size_t>(b % kWidth % streams);
        if (from == s || (clocks && now[s][from] >= place[static_cast<size_t>(b)])) continue;
        task.waits.push_back(b);
        awaited[static_cast<size_t>(b)] = true;
        for (size_t o = 0; o < count.size(); ++o) {
          now[s][o] = std::max(now[s][o], clock[static_cast<size_t>(b)][o]);
        }
      }
      place.push_back(++count[s]);
      now[s][s] = count[s];
      clock.push_back(now[s]);
      arguments_.push_back(std::make_unique<Arguments>(dag, t, words));
      tasks_.push_back(std::move(task));
    }
    for (size_t t = 0; t < tasks_.size(); ++t) {
      if (awaited[t]) tasks_[t].event = MakeEvent();
    }
    parts_.resize(static_cast<size_t>(crew.members()));
    for (size_t t = 0; t < tasks_.size(); ++t) {
      parts_[static_cast<size_t>(tasks_[t].stream % crew.members())].push_back(static_cast<int>(t));
    }
  }
  EagerDag(const EagerDag&) = delete;
  ~EagerDag() {
    for (const Task& task : tasks_) {
      if (task.event != nullptr) (void)cudaEventDestroy(task.event);
    }
    for (const cudaEvent_t event : ends_) (void)cudaEventDestroy(event);
    for (const cudaStream_t stream : streams_) (void)cudaStreamDestroy(stream);
  }

  Sample Run() {
    const Awake awake(crew_);
    ++run_;
    std::atomic<int> failed{0};
    const std::function<void(int)> submit = [&](int member) { failed |= Submit(parts_[static_cast<size_t>(member)]); };
    Sample sample;
    const Clock::time_point begin = Clock::now();
    crew_.Run(submit);
    int code = failed;
    for (size_t s = 1; s < streams_.size(); ++s) {
      code |= cudaEventRecord(ends_[s], streams_[s]) | cudaStreamWaitEvent(streams_[0], ends_[s], 0);
    }
    code |= cudaEventRecord(ends_[0], streams_[0]);
    sample.submit = Microseconds(Clock::now() - begin);
    cudaError_t done = cudaSuccess;
    while ((done = cudaEventQuery(ends_[0])) == cudaErrorNotReady) {
    }
    sample.total = Microseconds(Clock::now() - begin);
    if ((code | done) != 0) Fail("a raw run of the DAG failed");
    return sample;
  }

 private:
  struct Task {
    int stream;
    std::vector<int> waits{};  // tasks
    cudaEvent_t event = nullptr;  // where others wait
  };

  int Submit(const std::vector<int>& part) {
    int failed = 0;
    const bool alone = crew_.members() == 1;
    for (const int t : part) {
      const Task& task = tasks_[static_cast<size_t>(t)];
      const cudaStream_t stream = streams_[static_cast<size_t>(task.stream)];
      for (const int b : task.waits) {
        while (!alone && recorded_[static_cast<size_t>(b)].load(std::memory_order_acquire) != run_) {
          __builtin_ia32_pause();
        }
        failed |= cudaStreamWaitEvent(stream, tasks_[static_cast<size_t>(b)].event, 0);
      }
      failed |= cudaLaunchKernel(reinterpret_cast<const void*>(&TaskKernel), dim3(1), dim3(1),
                                 arguments_[static_cast<size_t>(t)]->argv.data(), 0, stream);
      if (task.event == nullptr) continue;
      failed |= cudaEventRecord(task.event, stream);
      if (!alone) recorded_[static_cast<size_t>(t)].store(run_, std::memory_order_release);
    }
    return failed;
  }

  Crew& crew_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> ends_;
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Arguments>> arguments_;
  std::vector<std::vector<int>> parts_;  // of each member: tasks
  std::vector<std::atomic<int>> recorded_;  // of each task: the run that has last submitted its record
  int run_ = 0;
};

}  // namespace bench
