// Chains of tiny kernels that nothing joins, on one device or spread over several: by hand, each thread with some of
// the streams, and as a Penstock graph whose lanes are the chains. Word c goes through all kernels of chain c.
//
// Threads: Run by the one that made it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "crew.cuh"
#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

PENSTOCK_HOST_DEVICE inline uint32_t Stepped(uint32_t word, uint32_t salt) { return word * 2654435761u + salt; }

// Takes `nanoseconds`.
static __global__ void StepKernel(uint32_t salt, uint64_t nanoseconds, uint32_t* word) {
  if (nanoseconds > 0) {
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
  }
  *word = Stepped(*word, salt);
}

struct Chains {
  int count, length;
  int devices = 1;  // each has as many of the chains, one behind the other
  uint64_t nanoseconds = 0;  // that a step takes

  int on_device() const { return count / devices; }
  int DeviceOf(int c) const { return c / on_device(); }
  static uint32_t Salt(int i) { return 7919u + static_cast<uint32_t>(i) * 104729u; }
  int kernels() const { return count * length; }
  std::vector<uint32_t> OnCpu(std::vector<uint32_t> words) const {
    for (uint32_t& word : words) {
      for (int i = 0; i < length; ++i) word = Stepped(word, Salt(i));
    }
    return words;
  }
};

constexpr uint32_t kUnwritten = 0xDEADBEEF;

// A way of running the chains, whose words are drawn anew for each run and compared with the CPU's behind it.
template <class Ran>
Way CheckedChains(Kind kind, const std::string& name, const Chains& chains, std::mt19937& random, Ran& way) {
  return {kind, name, [&chains, &random, &way, name] {
            std::vector<uint32_t> input(static_cast<size_t>(chains.count));
            for (uint32_t& word : input) word = static_cast<uint32_t>(random());
            std::vector<uint32_t> output(input.size(), kUnwritten);
            const Sample sample = way.Run(input, output);
            if (output != chains.OnCpu(input)) Fail(name + ": wrong result");
            return sample;
          }};
}

class RawChains {
 public:
  // With several devices a member of the crew has all chains of some, and launches `burst` steps of these on one before
  // it goes to the next; 0: all of them.
  RawChains(const Chains& chains, Crew& crew, int burst = 0)
      : chains_(chains),
        crew_(crew),
        burst_(burst > 0 ? burst : chains.length),
        shares_(static_cast<size_t>(crew.members())) {
    for (int d = 0; d < chains.devices; ++d) {
      Choose(d);
      uint32_t* const words = MakeDeviceMemory<uint32_t>(static_cast<size_t>(chains.on_device()));
      blocks_.push_back(words);
      for (int c = 0; c < chains.on_device(); ++c) chains_on_.push_back({words + c, MakeStream(), MakeEvent()});
    }
    Choose(0);
    for (int m = 0; m < crew.members(); ++m) {
      for (int d = 0; d < chains.devices; ++d) AddShare(m, d);
    }
  }
  RawChains(const RawChains&) = delete;
  ~RawChains() {
    for (const Chain& chain : chains_on_) (void)cudaEventDestroy(chain.end);
    for (const Chain& chain : chains_on_) (void)cudaStreamDestroy(chain.stream);
    for (uint32_t* const words : blocks_) (void)cudaFree(words);
  }

  Sample Run(const std::vector<uint32_t>& input, std::vector<uint32_t>& output) {
    Copy([&](uint32_t* words, size_t first, size_t bytes) {
      return cudaMemcpy(words, input.data() + first, bytes, cudaMemcpyDefault);
    });
    const Awake awake(crew_);
    std::atomic<int> failed{0};
    const std::function<void(int)> submit = [&](int member) { failed |= Submit(shares_[static_cast<size_t>(member)]); };
    Sample sample;
    const Clock::time_point begin = Clock::now();
    crew_.Run(submit);
    sample.submit = Microseconds(Clock::now() - begin);
    int code = failed;
    for (const Chain& chain : chains_on_) {
      cudaError_t done = cudaSuccess;
      while ((done = cudaEventQuery(chain.end)) == cudaErrorNotReady) {
      }
      code |= done;
    }
    sample.total = Microseconds(Clock::now() - begin);
    if (code != 0) Fail("raw chains failed");
    if (chains_.devices > 1) Choose(0);
    Copy([&](uint32_t* words, size_t first, size_t bytes) {
      return cudaMemcpy(output.data() + first, words, bytes, cudaMemcpyDefault);
    });
    return sample;
  }

 private:
  struct Chain {
    uint32_t* word;
    cudaStream_t stream;
    cudaEvent_t end;
  };
  // What a member launches on a device.
  struct Share {
    int device;
    std::vector<Chain> chains{};
  };

  void AddShare(int member, int device) {
    Share share{device};
    for (int c = 0; c < chains_.count; ++c) {
      const int by = (chains_.devices == 1 ? c : device) % crew_.members();
      if (chains_.DeviceOf(c) == device && by == member) share.chains.push_back(chains_on_[static_cast<size_t>(c)]);
    }
    if (!share.chains.empty()) shares_[static_cast<size_t>(member)].push_back(std::move(share));
  }

  // Of each device: its words, and which of all they are.
  template <class F>
  void Copy(F copy) {
    const auto count = static_cast<size_t>(chains_.on_device());
    for (size_t d = 0; d < blocks_.size(); ++d) {
      Check(copy(blocks_[d], d * count, count * sizeof(uint32_t)), "copying");
    }
  }

  int Submit(const std::vector<Share>& shares) const {
    int failed = 0, current = -1;
    for (int begin = 0; begin < chains_.length; begin += burst_) {
      const int end = std::min(chains_.length, begin + burst_);
      for (const Share& share : shares) {
        if (share.device != current) failed |= cudaSetDevice(current = share.device);
        for (int i = begin; i < end; ++i) failed |= Launch(share.chains, Chains::Salt(i), chains_.nanoseconds);
      }
    }
    for (const Share& share : shares) {
      for (const Chain& chain : share.chains) failed |= cudaEventRecord(chain.end, chain.stream);
    }
    return failed;
  }
  static int Launch(const std::vector<Chain>& chains, uint32_t salt, uint64_t nanoseconds) {
    int failed = 0;
    for (const Chain& chain : chains) {
      uint32_t* word = chain.word;
      std::array<void*, 3> argv{&salt, &nanoseconds, &word};
      failed |=
          cudaLaunchKernel(reinterpret_cast<const void*>(&StepKernel), dim3(1), dim3(1), argv.data(), 0, chain.stream);
    }
    return failed;
  }

  const Chains& chains_;
  Crew& crew_;
  const int burst_;
  std::vector<std::vector<Share>> shares_;  // of each member
  std::vector<uint32_t*> blocks_;  // of each device
  std::vector<Chain> chains_on_;
};

// A node of one step.
inline ps::NodeRef AddStep(ps::Graph& graph, const std::string& name, int i,
                           ps::AccessOf<uint32_t, ps::AccessMode::kReadWrite> word, uint64_t nanoseconds = 0) {
  return graph.Kernel(name, &StepKernel, ps::Blocks({1, 1, 1}, {1, 1, 1}), Chains::Salt(i), nanoseconds, word)
      .HostFallback([](uint32_t salt, uint64_t, uint32_t* of) { *of = Stepped(*of, salt); });
}

// Words go up before the run and down behind it, by graphs of their own.
class PenstockChains {
 public:
  PenstockChains(ps::Runtime& runtime, const Chains& chains)
      : host_(Must(runtime.MakeHostBuffer<uint32_t>(chains.count))) {
    ps::Graph graph("chains"), upload("upload"), download("download");
    const auto from = upload.Input<uint32_t>("host", chains.count),
               to = download.Output<uint32_t>("host", chains.count);
    std::vector<ps::BufferHandle<uint32_t>> words, up_to, down_from;
    const int64_t count = chains.on_device();
    for (int d = 0; d < chains.devices; ++d) {
      const std::string name = "words " + std::to_string(d);
      const ps::Box part = ps::Slice({d * count}, {count});
      memory_.push_back(Must(runtime.MakeDeviceBuffer<uint32_t>(count, d)));
      words.push_back(graph.InOut<uint32_t>(name, count, ps::kDevice));
      up_to.push_back(upload.Output<uint32_t>(name, count, ps::kDevice));
      down_from.push_back(download.Input<uint32_t>(name, count, ps::kDevice));
      upload.Copy("up " + std::to_string(d), ps::Read(from, part), ps::Write(up_to.back())).On(d);
      download.Copy("down " + std::to_string(d), ps::Read(down_from.back()), ps::Write(to, part)).On(d);
    }
    for (int i = 0; i < chains.length; ++i) {
      for (int c = 0; c < chains.count; ++c) {
        const int d = chains.DeviceOf(c);
        const auto word = ps::ReadWrite(words[static_cast<size_t>(d)], ps::Slice({c - d * count}, {1}));
        AddStep(graph, "step " + std::to_string(c) + " " + std::to_string(i), i, word, chains.nanoseconds).On(d);
      }
    }
    const auto compile = [&](const ps::Graph& of, int lanes) {
      return Must(runtime.Compile(of, {.slots = 1, .mode = ps::Mode::kStream, .max_lanes = lanes}));
    };
    exec_ = compile(graph, chains.on_device()), up_ = compile(upload, 8), down_ = compile(download, 8);
    io_ = exec_.bindings(), up_io_ = up_.bindings(), down_io_ = down_.bindings();
    up_io_.Set(from, host_);
    down_io_.Set(to, host_);
    for (size_t d = 0; d < memory_.size(); ++d) {
      io_.Set(words[d], memory_[d]);
      up_io_.Set(up_to[d], memory_[d]);
      down_io_.Set(down_from[d], memory_[d]);
    }
  }

  Sample Run(const std::vector<uint32_t>& input, std::vector<uint32_t>& output) {
    std::copy(input.begin(), input.end(), host_.begin());
    Move(up_, up_io_);
    std::copy(output.begin(), output.end(), host_.begin());
    Sample sample;
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_.Launch(io_));
    sample.submit = Microseconds(Clock::now() - begin);
    Must(run.Wait());
    sample.total = Microseconds(Clock::now() - begin);
    Move(down_, down_io_);
    std::copy(host_.begin(), host_.end(), output.begin());
    return sample;
  }

 private:
  static void Move(ps::Executable& exec, const ps::Bindings& io) {
    ps::Run run = Must(exec.Launch(io));
    Must(run.Wait());
  }

  std::vector<ps::DeviceBuffer<uint32_t>> memory_;  // of each device
  ps::HostBuffer<uint32_t> host_;
  ps::Executable exec_, up_, down_;
  ps::Bindings io_, up_io_, down_io_;
};

}  // namespace bench
