// The random DAG that random_dag.cu replays and submission threads.cu submits: 16 x N tasks of 20 us, each of which
// reads what one to three tasks of the row before have written, as arguments for CUDA and as a Penstock graph. All work
// on one array of device words, of which task t writes word t + 1, and word 0 is the input of the first row.
//
// Threads: plain values, and one that runs a graph.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "bench/copies/words.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

inline constexpr int kWidth = 16;
inline constexpr uint64_t kTaskNs = 20'000;

PENSTOCK_HOST_DEVICE inline uint32_t Made(uint32_t own, uint32_t a, uint32_t b, uint32_t c) {
  return own * 2654435761u + a * 3 + b * 5 + c * 7;
}

static __global__ void TaskKernel(uint32_t own, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                  uint32_t* out) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < kTaskNs);
  *out = Made(own, *a, *b, *c);
}

struct Dag {
  int rows;
  std::vector<uint32_t> own;
  std::vector<std::array<int, 3>> reads;  // words

  Dag(int rows_, std::mt19937& random) : rows(rows_) {
    for (int t = 0; t < rows * kWidth; ++t) {
      own.push_back(static_cast<uint32_t>(random()));
      std::array<int, 3> words{};
      const int first = (t / kWidth - 1) * kWidth + 1, many = 1 + static_cast<int>(random() % 3);
      for (int r = 0; t >= kWidth && r < 3; ++r) {
        words[r] = r < many ? first + static_cast<int>(random() % kWidth) : words[0];
      }
      reads.push_back(words);
    }
  }
  int tasks() const { return rows * kWidth; }
  // Tasks that task t comes after, each once.
  std::vector<int> Before(int t) const {
    std::vector<int> before;
    for (const int word : reads[static_cast<size_t>(t)]) {
      if (word > 0 && std::find(before.begin(), before.end(), word - 1) == before.end()) before.push_back(word - 1);
    }
    return before;
  }
  std::vector<uint32_t> OnCpu(uint32_t input) const {
    std::vector<uint32_t> words{input};
    for (size_t t = 0; t < own.size(); ++t) {
      const auto& [a, b, c] = reads[t];
      words.push_back(
          Made(own[t], words[static_cast<size_t>(a)], words[static_cast<size_t>(b)], words[static_cast<size_t>(c)]));
    }
    return words;
  }
};

// Of one task, for cudaLaunchKernel and its like.
struct Arguments {
  uint32_t own;
  const uint32_t *a, *b, *c;
  uint32_t* out;
  std::array<void*, 5> argv;
  Arguments(const Dag& dag, int t, uint32_t* words)
      : own(dag.own[static_cast<size_t>(t)]),
        a(words + dag.reads[static_cast<size_t>(t)][0]),
        b(words + dag.reads[static_cast<size_t>(t)][1]),
        c(words + dag.reads[static_cast<size_t>(t)][2]),
        out(words + t + 1),
        argv{&own, &a, &b, &c, &out} {}
  Arguments(const Arguments&) = delete;
};

// The words, and the Penstock graph that works on them.
class PenstockDag {
 public:
  // Column c is on device c * devices / kWidth; the words stay on the first.
  PenstockDag(ps::Runtime& runtime, const Dag& dag, ps::CompileOptions options, int devices = 1)
      : memory_(Must(runtime.MakeDeviceBuffer<uint32_t>(dag.tasks() + 1))) {
    ps::Graph graph("random dag");
    const auto words = graph.InOut<uint32_t>("words", dag.tasks() + 1, ps::kDevice);
    const auto word = [](int w) { return ps::Slice({w}, {1}); };
    for (int t = 0; t < dag.tasks(); ++t) {
      const auto& [a, b, c] = dag.reads[static_cast<size_t>(t)];
      graph
          .Kernel("task " + std::to_string(t), &TaskKernel, ps::Blocks({1, 1, 1}, {1, 1, 1}),
                  dag.own[static_cast<size_t>(t)], ps::Read(words, word(a)), ps::Read(words, word(b)),
                  ps::Read(words, word(c)), ps::Write(words, word(t + 1)))
          .HostFallback([](uint32_t own, const uint32_t* x, const uint32_t* y, const uint32_t* z, uint32_t* out) {
            *out = Made(own, *x, *y, *z);
          })
          .On(t % kWidth * devices / kWidth);
    }
    exec_ = Must(runtime.Compile(graph, options));
    io_ = exec_.bindings();
    io_.Set(words, memory_);
    all_ = Transfer(runtime, dag.tasks() + 1);
  }

  Sample Run() {
    Sample sample;
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_.Launch(io_));
    sample.submit = Microseconds(Clock::now() - begin);
    Must(run.Wait());
    sample.total = Microseconds(Clock::now() - begin);
    return sample;
  }
  uint32_t* words() const { return memory_.data(); }
  // While no clock runs.
  void Fill(uint32_t input) {
    std::fill(all_.host.begin(), all_.host.end(), kPoison);
    all_.host[0] = input;
    all_.Move(all_.up, all_.up_io.Set(all_.to, memory_).Set(all_.from_host, all_.host));
  }
  std::vector<uint32_t> Words() {
    std::fill(all_.host.begin(), all_.host.end(), kPoison);
    all_.Move(all_.down, all_.down_io.Set(all_.from, memory_).Set(all_.to_host, all_.host));
    return {all_.host.begin(), all_.host.end()};
  }
  ps::SubmissionReport submission_report() const { return exec_.submission_report(); }

 private:
  // All words up or down.
  struct Transfer {
    Transfer() = default;
    Transfer(ps::Runtime& runtime, int words) : host(Must(runtime.MakeHostBuffer<uint32_t>(words))) {
      ps::Graph upload("upload"), download("download");
      from_host = upload.Input<uint32_t>("host", words);
      to = upload.Output<uint32_t>("words", words, ps::kDevice);
      upload.Copy("up", ps::Read(from_host), ps::Write(to));
      from = download.Input<uint32_t>("words", words, ps::kDevice);
      to_host = download.Output<uint32_t>("host", words);
      download.Copy("down", ps::Read(from), ps::Write(to_host));
      up = Must(runtime.Compile(upload, {.slots = 1, .mode = ps::Mode::kStream}));
      down = Must(runtime.Compile(download, {.slots = 1, .mode = ps::Mode::kStream}));
      up_io = up.bindings();
      down_io = down.bindings();
    }
    static void Move(ps::Executable& exec, const ps::Bindings& io) {
      ps::Run run = Must(exec.Launch(io));
      Must(run.Wait());
    }
    ps::HostBuffer<uint32_t> host;
    ps::BufferHandle<uint32_t> from_host, to, from, to_host;
    ps::Executable up, down;
    ps::Bindings up_io, down_io;
  };

  ps::DeviceBuffer<uint32_t> memory_;
  ps::Executable exec_;
  ps::Bindings io_;
  Transfer all_;
};

}  // namespace bench
