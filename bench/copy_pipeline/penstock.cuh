// Penstock's half of the copy pipeline: one graph of one kernel, on one device or several.
//
// Threads: of parts of the items by several at once, with Bindings of their own; all else by one at a time.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"
#include "pulled.cuh"
#include "work.cuh"

namespace bench {

class PenstockPipeline {
 public:
  PenstockPipeline(ps::Runtime& runtime, const Items& items, int slots, ps::Where where,
                   std::vector<ps::DeviceShare> devices = {}, bool profile = false)
      : items_(items) {
    ps::Graph graph("copy pipeline");
    map_ = graph.Param<Affine>("map");
    in_ = graph.Input<uint32_t>("in", items.words, where);
    out_ = graph.Output<uint32_t>("out", items.words, where);
    graph
        .Kernel("mix", MixKernel, ps::Threads(items.words), ps::Read(in_), ps::Write(out_), items.words, items.rounds,
                map_)
        .HostFallback([](const uint32_t* in, uint32_t* out, int64_t words, uint32_t rounds, Affine map) {
          const Affine all = Repeated(map, rounds);
          for (int64_t i = 0; i < words; ++i) out[i] = in[i] * all.mul + all.add;
        });
    exec_ = Must(runtime.Compile(graph, {.slots = slots, .devices = std::move(devices), .profile = profile}));
    io_ = exec_.bindings();
  }

  const ps::Executable& exec() const { return exec_; }

  Sample Run() { return RunPart(exec_, io_, 0, items_.in.size()); }

  // So many items from the first on, by exec() or what it has on a device: launches all of them, then waits for all.
  Sample RunPart(ps::Executable& exec, ps::Bindings& io, size_t first, size_t count) const {
    std::vector<ps::Run> runs;
    const Clock::time_point begin = Clock::now();
    io.Set(map_, items_.map);
    for (size_t i = first; i < first + count; ++i) {
      runs.push_back(Must(exec.Launch(io.Set(in_, items_.in[i]).Set(out_, items_.out[i]))));
    }
    const Clock::time_point submitted = Clock::now();
    for (const ps::Run& run : runs) Must(run.Wait());
    const Clock::time_point end = Clock::now();
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  // All items so many times, without pause.
  Sample RunRounds(int rounds) {
    const Clock::time_point begin = Clock::now();
    io_.Set(map_, items_.map);
    std::vector<ps::Run> runs;
    for (int r = 0; r < rounds; ++r) {
      for (size_t i = 0; i < items_.in.size(); ++i) {
        runs.push_back(Must(exec_.Launch(io_.Set(in_, items_.in[i]).Set(out_, items_.out[i]))));
      }
    }
    const Clock::time_point submitted = Clock::now();
    for (const ps::Run& run : runs) Must(run.Wait());
    const Clock::time_point end = Clock::now();
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  // The same by a Pipeline, made before.
  Sample RunPipe(ps::Order order = ps::kInOrder) {
    ps::Stages<size_t> stages;
    stages.Run("mix", exec_, [this](ps::Item<size_t>& item) {
      item.Set(map_, items_.map).Set(in_, items_.in[item.value()]).Set(out_, items_.out[item.value()]);
    });
    return PullAll(items_.in.size(), std::move(stages), {.order = order});
  }

 private:
  const Items& items_;
  ps::ParamHandle<Affine> map_;
  ps::BufferHandle<uint32_t> in_, out_;
  ps::Executable exec_;
  ps::Bindings io_;
};

// Constants and outputs are drawn and poisoned before, and every word is checked behind.
inline Way Checked(Kind kind, const std::string& name, Items& items, std::function<Sample()> time) {
  return {kind, name, [&items, name, time] {
            items.Draw();
            const Sample sample = time();
            items.CheckResult(name);
            return sample;
          }};
}

}  // namespace bench
