// A chain or a stencil, the ways to run it, and the check of what each run leaves behind.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock.cuh"
#include "raw_work.cuh"

namespace bench {

class Workload {
 public:
  Workload(ps::Runtime& runtime, std::string name, int tasks, Takes takes, std::mt19937& random)
      : name_(std::move(name)),
        takes_(takes),
        random_(random),
        constants_(RandomConstants(tasks, random)),
        first_(RandomConstants(1, random)[0]),
        value_(Must(runtime.MakeHostBuffer<Constants>(1))) {
    value_[0] = first_;
  }
  Workload(const Workload&) = delete;
  virtual ~Workload() = default;

  virtual Valued Declare(bool kernels) const = 0;
  // `in_block`: the value is copied to the device in every run, and tasks read it there.
  virtual std::shared_ptr<const RawWork> MakeRaw(const RawShape& shape, bool in_block) = 0;

  // Every run has new input; where `takes` is not kNone, and `changing`, another value too, else the one that it was
  // made with.
  void Add(Kind kind, const std::string& name, std::function<Sample()> time, bool changing = true, int group = 0) {
    const auto run = [this, name, time, changing] {
      value_[0] = changing ? RandomConstants(1, random_)[0] : first_;
      Draw();
      const Sample sample = time();
      if (!IsRight(With(value_[0], takes_, constants_))) Fail(name_ + ", " + name + ": wrong result");
      return sample;
    };
    ways_.push_back({kind, name, run, group});
  }
  void Run(const Options& options, int warm_ups) { Measure(ways_, options.quick ? 1 : warm_ups, options.repeats); }

  const std::string& name() const { return name_; }
  int tasks() const { return static_cast<int>(constants_.size()); }
  Takes takes() const { return takes_; }
  Constants value() const { return value_[0]; }
  const std::vector<Way>& ways() const { return ways_; }

 protected:
  virtual void Draw() = 0;  // new input, poisoned output
  // Whether the output is what the CPU makes of the input.
  virtual bool IsRight(const std::vector<Constants>& tasks) = 0;

  uint32_t Random() { return static_cast<uint32_t>(random_()); }
  const std::vector<Constants>& constants() const { return constants_; }
  RawValue ValueFor(bool in_block) { return {takes_, value_.data(), in_block}; }

 private:
  const std::string name_;
  const Takes takes_;
  std::mt19937& random_;
  const std::vector<Constants> constants_;
  const Constants first_;
  ps::HostBuffer<Constants> value_;
  std::vector<Way> ways_;
};

// The cell stays on the device, where all ways work on it: nothing is copied while the clock runs. A host device's
// memory cannot be reached from here; there it is pinned memory, which runs copy.
class Chain : public Workload {
 public:
  Chain(ps::Runtime& runtime, bool cuda, int tasks, Takes takes, std::mt19937& random)
      : Workload(runtime, "chain of " + std::to_string(tasks), tasks, takes, random),
        cuda_(cuda),
        pinned_(Must(runtime.MakeHostBuffer<uint32_t>(1))),
        cell_(Must(runtime.MakeDeviceBuffer<uint32_t>(1))) {}

  Valued Declare(bool kernels) const override {
    return DeclareValued(constants(), takes(), kernels, [this](ps::Graph graph, const auto& add) {
      return cuda_ ? DeclareChain(std::move(graph), tasks(), cell_, ps::kDevice, add)
                   : DeclareChain(std::move(graph), tasks(), pinned_, ps::kPinned, add);
    });
  }
  std::shared_ptr<const RawWork> MakeRaw(const RawShape& shape, bool in_block) override {
    return RawChainWork(constants(), cell_.data(), shape, ValueFor(in_block));
  }

 private:
  void Draw() override {
    pinned_[0] = start_ = Random();
    Copy(cell_.data(), pinned_.data());
  }
  bool IsRight(const std::vector<Constants>& tasks) override {
    Copy(pinned_.data(), cell_.data());
    return pinned_[0] == ChainOnCpu(tasks, start_);
  }

  // Between pinned memory and the device, so that it is done when cudaMemcpy returns.
  void Copy(uint32_t* to, const uint32_t* from) const {
    if (cuda_) Check(cudaMemcpy(to, from, sizeof(uint32_t), cudaMemcpyDefault), "copying the cell");
  }

  const bool cuda_;
  ps::HostBuffer<uint32_t> pinned_;
  const ps::DeviceBuffer<uint32_t> cell_;
  uint32_t start_ = 0;
};

// The input is uploaded and the output downloaded in every run; the cells between them stay on the device, where all
// ways work on them.
class Stencil : public Workload {
 public:
  Stencil(ps::Runtime& runtime, int rows, Takes takes, std::mt19937& random)
      : Workload(runtime, "stencil of 8 x " + std::to_string(rows), rows * kWidth, takes, random),
        in_(Must(runtime.MakeHostBuffer<uint32_t>(kWidth))),
        out_(Must(runtime.MakeHostBuffer<uint32_t>(kWidth))),
        cells_(Must(runtime.MakeDeviceBuffer<uint32_t>(2 * kWidth))) {}

  Valued Declare(bool kernels) const override {
    return DeclareValued(constants(), takes(), kernels, [this](ps::Graph graph, const auto& add) {
      return DeclareStencil(std::move(graph), tasks() / kWidth, in_, out_, &cells_, add);
    });
  }
  std::shared_ptr<const RawWork> MakeRaw(const RawShape& shape, bool in_block) override {
    return RawStencilWork(constants(), in_.data(), out_.data(), cells_.data(), shape, ValueFor(in_block));
  }

 private:
  static constexpr uint32_t kPoison = 0xDEADBEEF;
  void Draw() override {
    for (uint32_t& cell : in_) cell = Random();
    for (uint32_t& cell : out_) cell = kPoison;
  }
  bool IsRight(const std::vector<Constants>& tasks) override {
    Row in;
    std::copy_n(in_.begin(), kWidth, in.begin());
    const Row expected = StencilOnCpu(tasks, in);
    return std::equal(expected.begin(), expected.end(), out_.begin());
  }

  ps::HostBuffer<uint32_t> in_, out_;
  const ps::DeviceBuffer<uint32_t> cells_;
};

}  // namespace bench
