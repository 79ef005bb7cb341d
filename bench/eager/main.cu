// What submitting costs a task, on the caller's thread: a chain of 1000 tiny tasks and a stencil of 8 x 128, by hand
// (raw.cuh) and as Penstock graphs in stream mode, with Kernel nodes and with ParallelFor.
//
// Timed for Penstock: from the entry of Launch to its return (submit), and to the return of Wait (total); the graph was
// compiled once and its bindings were set before. The device is idle when a run starts and works the tasks off while
// they are submitted, as it does for a program that submits and then waits; so no queue fills up, which (at about 1020
// commands of a stream that do not move) would block the submitting thread inside the driver and be what is measured.
// Both halves upload and download the cells too, which counts as submission. The input is drawn anew for every run, so
// that a task left out shows, and every result is compared with the CPU's.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock.cuh"
#include "penstock/ps.h"
#include "raw.cuh"
#include "work.cuh"

namespace bench {
namespace {

constexpr uint32_t kPoison = 0xDEADBEEF;

// A chain or a stencil with its ways; raw ones only where there is a device.
class Workload {
 public:
  Workload(std::string name, int tasks, std::mt19937& random)
      : name_(std::move(name)), random_(random), constants_(RandomConstants(tasks, random)) {}
  Workload(const Workload&) = delete;
  virtual ~Workload() = default;

  void Run(const Options& options) { Measure(ways_, options.quick ? 1 : 3, options.repeats); }

  void AddTo(Report& report) const {
    const double scale = 1.0 / static_cast<double>(constants_.size());
    for (const char* nodes : {kKernels, kParallelFor}) {
      const Way& way = Find(ways_, PenstockName(nodes));
      const auto compare = [&](const char* when, double Sample::* figure, double target) {
        report.Compare(name_ + ", " + nodes + ", " + when, "us a task", SpreadOf(BestRaw(ways_, figure), figure, scale),
                       SpreadOf(way, figure, scale), target);
      };
      compare("submit", &Sample::submit, 1.15);
      compare("until done", &Sample::total, 0);
    }
    report.Details(name_, "us a task", ways_, scale);
  }

 protected:
  static constexpr const char* kKernels = "Kernel nodes";
  static constexpr const char* kParallelFor = "ParallelFor nodes";
  static std::string PenstockName(const char* nodes) { return std::string("Penstock, ") + nodes; }

  virtual void Draw() = 0;  // new input, poisoned output
  virtual bool IsRight() const = 0;  // whether the output is what the CPU makes of the input

  void Add(Kind kind, const std::string& name, std::function<Sample()> time) {
    ways_.push_back({kind, name, [this, name, time] {
                       Draw();
                       const Sample sample = time();
                       if (!IsRight()) Fail(name_ + ", " + name + ": wrong result");
                       return sample;
                     }});
  }
  void AddPenstock(const char* nodes, Bound made) {
    auto bound = std::make_shared<Bound>(std::move(made));
    Add(Kind::kPenstock, PenstockName(nodes), [bound] { return TimePenstock(*bound); });
  }
  uint32_t Random() { return static_cast<uint32_t>(random_()); }
  const std::vector<Constants>& constants() const { return constants_; }

 private:
  const std::string name_;
  std::mt19937& random_;
  const std::vector<Constants> constants_;
  std::vector<Way> ways_;
};

class Chain : public Workload {
 public:
  Chain(ps::Runtime& runtime, int tasks, bool raw, std::mt19937& random)
      : Workload("chain of " + std::to_string(tasks), tasks, random), cell_(Must(runtime.MakeHostBuffer<uint32_t>(1))) {
    if (raw) {
      raw_ = std::make_unique<RawChain>(constants(), cell_.data());
      AddRaw<ByChevrons>(), AddRaw<ByLaunchEx>(), AddRaw<ByFunction>(), AddRaw<ByKernel>();
    }
    AddPenstock(kKernels, ChainOnPenstock(runtime, constants(), cell_, true));
    AddPenstock(kParallelFor, ChainOnPenstock(runtime, constants(), cell_, false));
  }

 private:
  template <class By>
  void AddRaw() {
    Add(Kind::kRaw, By::kName, [this] { return raw_->Run<By>(); });
  }
  void Draw() override { cell_[0] = start_ = Random(); }
  bool IsRight() const override { return cell_[0] == ChainOnCpu(constants(), start_); }

  ps::HostBuffer<uint32_t> cell_;
  uint32_t start_ = 0;
  std::unique_ptr<RawChain> raw_;
};

class Stencil : public Workload {
 public:
  Stencil(ps::Runtime& runtime, int rows, bool raw, std::mt19937& random)
      : Workload("stencil of 8 x " + std::to_string(rows), rows * kWidth, random),
        in_(Must(runtime.MakeHostBuffer<uint32_t>(kWidth))),
        out_(Must(runtime.MakeHostBuffer<uint32_t>(kWidth))) {
    if (raw) {
      raw_ = std::make_unique<RawStencil>(constants(), in_.data(), out_.data());
      AddRaw<ByChevrons>(), AddRaw<ByLaunchEx>(), AddRaw<ByFunction>(), AddRaw<ByKernel>();
      Add(Kind::kScale, "lanes with an event a task, cuLaunchKernel",
          [this, rows] { return raw_->RunLanes<ByFunction>(static_cast<size_t>(rows)); });
    }
    AddPenstock(kKernels, StencilOnPenstock(runtime, constants(), in_, out_, true));
    AddPenstock(kParallelFor, StencilOnPenstock(runtime, constants(), in_, out_, false));
  }

 private:
  template <class By>
  void AddRaw() {
    const std::string by = std::string(", ") + By::kName;
    Add(Kind::kRaw, "lanes" + by, [this] { return raw_->RunLanes<By>(); });
    Add(Kind::kRaw, "phased" + by, [this] { return raw_->RunPhased<By>(); });
    Add(Kind::kRaw, "wave" + by, [this] { return raw_->RunWave<By>(); });
    Add(Kind::kScale, "one stream" + by, [this] { return raw_->RunOneStream<By>(); });
  }
  void Draw() override {
    for (uint32_t& cell : in_) cell = Random();
    for (uint32_t& cell : out_) cell = kPoison;
  }
  bool IsRight() const override {
    Row in;
    std::copy_n(in_.begin(), kWidth, in.begin());
    const Row expected = StencilOnCpu(constants(), in);
    return std::equal(expected.begin(), expected.end(), out_.begin());
  }

  ps::HostBuffer<uint32_t> in_, out_;
  std::unique_ptr<RawStencil> raw_;
};

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool raw = missing.empty();
  if (raw) Check(cudaSetDevice(0), "choosing device 0");
  if (!raw) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = raw ? "cuda:0" : "host"}));
  std::mt19937 random(20261);
  Chain chain(runtime, options.quick ? 50 : 1000, raw, random);
  Stencil stencil(runtime, options.quick ? 8 : 128, raw, random);
  chain.Run(options);
  stencil.Run(options);

  Report report("Eager submission");
  if (!raw) {
    report.Skip(missing, "On a host device the Penstock half gave the right results.");
    return;
  }
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description +
              ". A run starts on an idle device; the copies of the cells count. Raw "
              "is the best of the raw ways below; Penstock has one slot, and submits on the caller's thread.");
  chain.AddTo(report);
  stencil.AddTo(report);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(
        bench::ParseOptions(argc, argv, "eager", "What submitting tiny tasks costs, by hand and with Penstock."));
    return 0;
  });
}
