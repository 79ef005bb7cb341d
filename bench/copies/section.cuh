// A section of the copy benchmarks: one table, with ways that are checked after every run.
//
// What goes wrong costs the rest nothing: a wrong result is told, and its way goes on; what fails otherwise (Failure)
// ends one row with all its ways.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "words.cuh"

namespace bench {

enum class Direction { kUp, kDown };
constexpr Direction kDirections[] = {Direction::kUp, Direction::kDown};
inline const char* NameOf(Direction direction) { return direction == Direction::kUp ? "H2D" : "D2H"; }

inline std::string BytesText(int64_t bytes) {
  if (bytes % (int64_t{1} << 30) == 0) return std::to_string(bytes >> 30) + " GiB";
  if (bytes % (int64_t{1} << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

class Section {
 public:
  // Without `cuda` only the Penstock ways are there, on host devices, for their results; `small`: sizes as in a smoke
  // run. `warm`: each way is run once more just before it is timed, with other words.
  Section(const Options& options, bool cuda, std::string name, const std::string& title, bool warm)
      : options_(options), cuda_(cuda), warm_(warm), name_(std::move(name)), report_("Copies: " + title) {}
  Section(const Section&) = delete;

  bool cuda() const { return cuda_; }
  bool small() const { return options_.quick || !cuda_; }
  std::string one_device() const { return cuda_ ? "cuda:0" : "host:1"; }
  std::string two_devices() const { return cuda_ ? "cuda:0,1" : "host:2"; }
  Report& report() { return report_; }
  bool failed() const { return failed_; }

  uint32_t salt() const { return salt_; }  // of the present run

  // A way to do `what`, that draws its data before each run, and looks afterwards how many words are wrong.
  Way Checked(Kind kind, const std::string& what, const std::string& name, std::function<void()> draw,
              std::function<Sample()> time, std::function<int64_t()> count_wrong) {
    return {kind, name, [this, full = what + ", " + name, draw, time, count_wrong] {
              const auto run = [&] {
                salt_ = static_cast<uint32_t>(random_());
                draw();
                if (cuda_) (void)cudaGetLastError();  // a launch is asked for its own errors
                return time();
              };
              if (warm_) run();
              const Sample sample = run();
              if (const int64_t wrong = count_wrong(); wrong != 0) Complain(full, wrong);
              return sample;
            }};
  }
  void Run(std::vector<Way>& ways, int warm_ups) { Measure(ways, cuda_ ? warm_ups : 0, cuda_ ? options_.repeats : 1); }

  // Measures one row.
  void Try(const std::string& what, const std::function<void()>& measure) {
    try {
      measure();
    } catch (const std::exception& failure) {
      Failed(what + ": " + failure.what());
    }
  }
  void Skip(const std::string& why) {
    skipped_ = true;
    report_.Note("Skipped: " + why + ".");
  }
  bool skipped() const { return skipped_; }
  void Failed(const std::string& why) {
    failed_ = true;
    std::fprintf(stderr, "FAILED: copies, %s: %s\n", name_.c_str(), why.c_str());
    report_.Note("**FAILED**: " + name_ + ": " + why + ".");
  }

 private:
  void Complain(const std::string& way, int64_t wrong) {
    if (told_.insert(way).second) Failed(way + ": " + std::to_string(wrong) + " words are wrong");
  }

  const Options& options_;
  const bool cuda_, warm_;
  const std::string name_;
  Report report_;
  std::mt19937 random_{20264};
  uint32_t salt_ = 0;
  std::set<std::string> told_;  // ways with wrong results
  bool failed_ = false, skipped_ = false;
};

template <class Submit, class Wait>
Sample TimeOf(Submit submit, Wait wait) {
  const Clock::time_point begin = Clock::now();
  submit();
  const Clock::time_point submitted = Clock::now();
  wait();
  const Clock::time_point end = Clock::now();
  return {Microseconds(submitted - begin), Microseconds(end - begin)};
}

inline void Wait(cudaStream_t stream) { Check(cudaStreamSynchronize(stream), "waiting for a stream"); }

// A graph compiled once and bound once.
struct Bound {
  ps::Executable exec;
  ps::Bindings io;

  Sample Run() {
    absl::StatusOr<ps::Run> run;
    absl::Status status;
    const Sample sample = TimeOf([&] { run = exec.Launch(io); },
                                 [&] { status = run.ok() ? run->Wait(std::chrono::minutes(1)) : run.status(); });
    if (run.ok() && !run->done()) {  // it still uses memory that would be gone soon
      std::fprintf(stderr, "FAILED: a run has not ended after a minute\n");
      std::_Exit(1);
    }
    Must(status);
    return sample;
  }
};

inline Bound Bind(ps::Executable exec) {
  ps::Bindings io = exec.bindings();
  return {std::move(exec), std::move(io)};
}

inline ps::Runtime MakeRuntime(const std::string& devices, int staging_threads = 0) {
  return Must(ps::Runtime::Create({.devices = devices, .staging = {.threads = staging_threads}}));
}

inline ps::KernelShape ShapeOf(const Region& region) {
  return ps::Blocks({BlocksARow(region), region.rows, 1}, {kBlock, 1, 1});
}

// Device memory of the raw ways, and how many of its words were wrong. Made on the current device, for as long as the
// process lives.
class RawWords {
 public:
  explicit RawWords(const Region& region)
      : region_(region),
        words_(MakeDeviceMemory<uint32_t>(static_cast<size_t>(region.words()))),
        wrong_(MakeDeviceMemory<uint32_t>(1)) {
    Check(cudaMemset(words_, 0x5A, bytes()), "filling device memory");
    Forget();
  }
  uint32_t* data() const { return words_; }
  size_t bytes() const { return static_cast<size_t>(region_.words()) * sizeof(uint32_t); }

  void Make(uint32_t salt, cudaStream_t stream) const {
    MakeKernel<<<Grid(), kBlock, 0, stream>>>(words_, region_, salt);
    Check(cudaGetLastError(), "launching");
  }
  void Count(uint32_t salt, cudaStream_t stream) const {
    CountKernel<<<Grid(), kBlock, 0, stream>>>(words_, region_, salt, wrong_);
    Check(cudaGetLastError(), "launching");
  }
  void Forget() const {
    Check(cudaMemset(wrong_, 0, sizeof(uint32_t)), "filling device memory");
    Check(cudaDeviceSynchronize(), "waiting for the device");
  }
  int64_t wrong() const {
    uint32_t wrong = UINT32_MAX;
    Check(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost), "downloading");
    return wrong;
  }

 private:
  dim3 Grid() const { return dim3(BlocksARow(region_), static_cast<unsigned>(region_.rows)); }

  const Region region_;
  uint32_t *const words_, *const wrong_;
};

// The number of wrong words that a graph has found.
class WrongWords {
 public:
  explicit WrongWords(ps::Runtime& runtime, int device = 0)
      : state_(Must(runtime.MakeState<uint32_t>("wrong", 1, {}, {.device = device}))) {}
  const ps::State<uint32_t>& state() const { return state_; }
  void Forget() { Must(state_.Reset()); }
  int64_t count() const {
    uint32_t wrong = UINT32_MAX;
    Must(state_.Read(std::span(&wrong, 1)));
    return wrong;
  }

 private:
  ps::State<uint32_t> state_;
};

inline ps::NodeRef AddMake(ps::Graph& graph, ps::AccessOf<uint32_t, ps::AccessMode::kWrite> out, const Region& region,
                           ps::ParamHandle<uint32_t> salt) {
  return graph.Kernel("make", MakeKernel, ShapeOf(region), out, region, salt).HostFallback(MakeOnHost);
}
inline ps::NodeRef AddCount(ps::Graph& graph, ps::AccessOf<uint32_t, ps::AccessMode::kRead> in, const Region& region,
                            ps::ParamHandle<uint32_t> salt, const WrongWords& wrong) {
  return graph.Kernel("count", CountKernel, ShapeOf(region), in, region, salt, ps::ReadWrite(wrong.state()))
      .HostFallback(CountOnHost);
}

}  // namespace bench
