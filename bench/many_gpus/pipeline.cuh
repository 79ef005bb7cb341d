// The copy pipeline on several devices at once, a thread for each: by hand (bench/copy_pipeline/raw.cuh), and with
// Penstock's executable asked for its part on each device.
//
// Threads: single-threaded; Run uses the crew.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "bench/copy_pipeline/penstock.cuh"
#include "bench/copy_pipeline/raw.cuh"
#include "bench/copy_pipeline/work.cuh"
#include "bench/feeders/crew.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

// What all members of the crew do at once: until the last one has submitted, and until all are done. What one of them
// throws is thrown here.
inline Sample AtOnce(Crew& crew, const std::function<Sample(int)>& of_member) {
  std::vector<Sample> samples(static_cast<size_t>(crew.members()));
  std::vector<std::exception_ptr> thrown(samples.size());
  const std::function<void(int)> job = [&](int member) {
    const auto m = static_cast<size_t>(member);
    try {
      samples[m] = of_member(member);
    } catch (...) {
      thrown[m] = std::current_exception();
    }
  };
  const Awake awake(crew);
  Sample all;
  const Clock::time_point begin = Clock::now();
  crew.Run(job);
  all.total = Microseconds(Clock::now() - begin);
  for (const std::exception_ptr& what : thrown) {
    if (what != nullptr) std::rethrow_exception(what);
  }
  for (const Sample& sample : samples) all.submit = std::max(all.submit, sample.submit);
  return all;
}

// Each member of the crew has the device of its number and as many of the items as the others.
class RawOnEach {
 public:
  RawOnEach(const Items& items, Crew& crew) : crew_(crew) {
    for (int d = 0; d < crew.members(); ++d) raw_.push_back(std::make_unique<RawPipeline>(items, d, crew.members()));
    Choose(0);
  }

  RawPipeline& first() { return *raw_[0]; }
  int share(const Items& items) const { return items.count / crew_.members(); }

  Sample Engines(int sets) {
    return Each([sets](RawPipeline& raw) { return raw.Engines(sets, 1); });
  }
  Sample Slots(int sets) {
    return Each([sets](RawPipeline& raw) { return raw.Slots(sets); });
  }
  Sample Alone(bool uploads, bool kernels, bool downloads) {
    return Each([=](RawPipeline& raw) { return raw.Alone(uploads, kernels, downloads); });
  }

 private:
  template <class F>
  Sample Each(F f) {
    return AtOnce(crew_, [&](int member) { return f(*raw_[static_cast<size_t>(member)]); });
  }

  Crew& crew_;
  std::vector<std::unique_ptr<RawPipeline>> raw_;  // of each device
};

// The same with launches and waits of Penstock's, on the part that the executable has on each device.
class PenstockOnEach {
 public:
  PenstockOnEach(PenstockPipeline& pipeline, const Items& items, Crew& crew)
      : pipeline_(pipeline), crew_(crew), share_(static_cast<size_t>(items.count / crew.members())) {
    for (int d = 0; d < crew.members(); ++d) {
      parts_.push_back(Must(pipeline.exec().On(d)));
      bindings_.push_back(parts_.back().bindings());
    }
  }

  Sample Run() {
    return AtOnce(crew_, [this](int member) {
      const auto m = static_cast<size_t>(member);
      return pipeline_.RunPart(parts_[m], bindings_[m], m * share_, share_);
    });
  }

 private:
  PenstockPipeline& pipeline_;
  Crew& crew_;
  const size_t share_;
  std::vector<ps::Executable> parts_;
  std::vector<ps::Bindings> bindings_;
};

}  // namespace bench
