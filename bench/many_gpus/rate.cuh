// Chains of tiny kernels as the items of a Pipeline on several devices: one run a chain, of one lane.
//
// Threads: Run by the one that made it.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/feeders/rate.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "pulled.cuh"

namespace bench {

class PenstockItems {
 public:
  // `host_threads`: of a host stage in front, which does nothing but that its threads launch what they let go of; 0:
  // there is none.
  PenstockItems(ps::Runtime& runtime, const Chains& chains, int slots, int host_threads)
      : host_threads_(host_threads), host_(Must(runtime.MakeHostBuffer<uint32_t>(chains.count))) {
    ps::Graph graph("chain");
    word_ = graph.InOut<uint32_t>("word", 1, ps::kPinned);
    for (int i = 0; i < chains.length; ++i) AddStep(graph, "step " + std::to_string(i), i, ps::ReadWrite(word_));
    std::vector<ps::DeviceShare> devices = runtime.all_devices();
    exec_ = Must(runtime.Compile(
        graph, {.slots = slots, .devices = std::move(devices), .mode = ps::Mode::kStream, .max_lanes = 1}));
  }

  Sample Run(const std::vector<uint32_t>& input, std::vector<uint32_t>& output) {
    std::copy(input.begin(), input.end(), host_.begin());
    ps::Stages<size_t> stages;
    if (host_threads_ > 0) stages.Host("nothing", [](size_t&) {}, {.workers = host_threads_});
    stages.Run("chain", exec_,
               [this](ps::Item<size_t>& item) { item.Set(word_, host_.span().subspan(item.value(), 1)); });
    const Sample sample = PullAll(input.size(), std::move(stages));
    std::copy(host_.begin(), host_.end(), output.begin());
    return sample;
  }

 private:
  const int host_threads_;
  ps::HostBuffer<uint32_t> host_;
  ps::BufferHandle<uint32_t> word_;
  ps::Executable exec_;
};

}  // namespace bench
