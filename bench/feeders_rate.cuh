// Chains of tiny kernels that nothing joins: by hand, each thread with some of the streams, and as a Penstock graph
// whose lanes are the chains. Word c goes through all kernels of chain c.
//
// Threads: Run by the one that made it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "feeders_crew.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

PENSTOCK_HOST_DEVICE inline uint32_t Stepped(uint32_t word, uint32_t salt) { return word * 2654435761u + salt; }

static __global__ void StepKernel(uint32_t salt, uint32_t* word) { *word = Stepped(*word, salt); }

struct Chains {
  int count, length;
  uint32_t Salt(int c, int i) const { return static_cast<uint32_t>(c) * 7919u + static_cast<uint32_t>(i) * 104729u; }
  int kernels() const { return count * length; }
  std::vector<uint32_t> OnCpu(std::vector<uint32_t> words) const {
    for (int c = 0; c < count; ++c) {
      for (int i = 0; i < length; ++i)
        words[static_cast<size_t>(c)] = Stepped(words[static_cast<size_t>(c)], Salt(c, i));
    }
    return words;
  }
};

class RawChains {
 public:
  RawChains(const Chains& chains, Crew& crew)
      : chains_(chains), crew_(crew), words_(MakeDeviceMemory<uint32_t>(static_cast<size_t>(chains.count))) {
    for (int c = 0; c < chains.count; ++c) streams_.push_back(MakeStream());
    for (int c = 0; c < chains.count; ++c) ends_.push_back(MakeEvent());
  }
  RawChains(const RawChains&) = delete;
  ~RawChains() {
    for (const cudaEvent_t event : ends_) (void)cudaEventDestroy(event);
    for (const cudaStream_t stream : streams_) (void)cudaStreamDestroy(stream);
    (void)cudaFree(words_);
  }

  Sample Run(const std::vector<uint32_t>& input, std::vector<uint32_t>& output) {
    Check(cudaMemcpy(words_, input.data(), input.size() * sizeof(uint32_t), cudaMemcpyDefault), "copying");
    const Awake awake(crew_);
    std::atomic<int> failed{0};
    const std::function<void(int)> submit = [&](int member) { failed |= Submit(member); };
    Sample sample;
    const Clock::time_point begin = Clock::now();
    crew_.Run(submit);
    sample.submit = Microseconds(Clock::now() - begin);
    int code = failed;
    for (const cudaEvent_t end : ends_) {
      cudaError_t done = cudaSuccess;
      while ((done = cudaEventQuery(end)) == cudaErrorNotReady) {
      }
      code |= done;
    }
    sample.total = Microseconds(Clock::now() - begin);
    if (code != 0) Fail("raw chains failed");
    Check(cudaMemcpy(output.data(), words_, output.size() * sizeof(uint32_t), cudaMemcpyDefault), "copying");
    return sample;
  }

 private:
  int Submit(int member) {
    int failed = 0;
    for (int i = 0; i < chains_.length; ++i) {
      for (int c = member; c < chains_.count; c += crew_.members()) {
        uint32_t salt = chains_.Salt(c, i);
        uint32_t* word = words_ + c;
        std::array<void*, 2> argv{&salt, &word};
        failed |= cudaLaunchKernel(reinterpret_cast<const void*>(&StepKernel), dim3(1), dim3(1), argv.data(), 0,
                                   streams_[static_cast<size_t>(c)]);
      }
    }
    for (int c = member; c < chains_.count; c += crew_.members()) {
      failed |= cudaEventRecord(ends_[static_cast<size_t>(c)], streams_[static_cast<size_t>(c)]);
    }
    return failed;
  }

  const Chains& chains_;
  Crew& crew_;
  uint32_t* const words_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> ends_;
};

// Words go up before the run and down behind it, by graphs of their own.
class PenstockChains {
 public:
  PenstockChains(ps::Runtime& runtime, const Chains& chains)
      : memory_(Must(runtime.MakeDeviceBuffer<uint32_t>(chains.count))),
        host_(Must(runtime.MakeHostBuffer<uint32_t>(chains.count))) {
    ps::Graph graph("chains"), upload("upload"), download("download");
    const auto words = graph.InOut<uint32_t>("words", chains.count, ps::kDevice);
    for (int i = 0; i < chains.length; ++i) {
      for (int c = 0; c < chains.count; ++c) {
        graph
            .Kernel("step " + std::to_string(c) + " " + std::to_string(i), &StepKernel,
                    ps::Blocks({1, 1, 1}, {1, 1, 1}), chains.Salt(c, i), ps::ReadWrite(words, ps::Slice({c}, {1})))
            .HostTwin([](uint32_t salt, uint32_t* word) { *word = Stepped(*word, salt); });
      }
    }
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = ps::Mode::kStream, .max_lanes = chains.count}));
    io_ = exec_.bindings();
    io_.Set(words, memory_);
    const auto from = upload.Input<uint32_t>("host", chains.count);
    const auto up_to = upload.Output<uint32_t>("words", chains.count, ps::kDevice);
    upload.Copy("up", ps::Read(from), ps::Write(up_to));
    const auto down_from = download.Input<uint32_t>("words", chains.count, ps::kDevice);
    const auto to = download.Output<uint32_t>("host", chains.count);
    download.Copy("down", ps::Read(down_from), ps::Write(to));
    up_ = Must(runtime.Compile(upload, {.slots = 1, .mode = ps::Mode::kStream}));
    down_ = Must(runtime.Compile(download, {.slots = 1, .mode = ps::Mode::kStream}));
    up_io_ = up_.bindings();
    up_io_.Set(from, host_).Set(up_to, memory_);
    down_io_ = down_.bindings();
    down_io_.Set(down_from, memory_).Set(to, host_);
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

  ps::DeviceBuffer<uint32_t> memory_;
  ps::HostBuffer<uint32_t> host_;
  ps::Executable exec_, up_, down_;
  ps::Bindings io_, up_io_, down_io_;
};

}  // namespace bench
