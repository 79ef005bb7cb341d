// A training step of 18 small nodes, many times in a row: two uploads from memory that is not pinned, five layers that
// read a State each, five gradients, and five updates that write the States. Raw CUDA against Penstock.
//
// Raw ways copy each step's input to one of three pinned blocks, with an event that says when it is free again:
//   stream    everything on one stream
//   uploads   uploads on a stream of their own
//   graph     a graph for each pinned block, made once
// Penstock has three slots and the loop that a user would write. Its stream mode competes with the first two, its graph
// mode with all. The arithmetic is of unsigned integers, so that the weights at the end are checked word by word.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int kLayers = 5, kSlots = 3;
constexpr int64_t kWords = 4096, kLabels = 64;
using Words = std::vector<uint32_t>;

struct First {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* x, const uint32_t* label, uint32_t* out) const {
    out[i] = x[i] * 5 + label[i % kLabels];
  }
};
struct Layer {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* in, const uint32_t* weight, uint32_t* out) const {
    out[i] = in[i] * 3 + weight[i];
  }
};
struct Gradient {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* last, const uint32_t* in, uint32_t* out) const {
    out[i] = last[i] ^ (in[i] * 7);
  }
};
struct Update {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* gradient, uint32_t* weight) const {
    weight[i] += gradient[i];
  }
};

template <class F, class... Args>
__global__ void ForEach(F f, Args... args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < kWords) f(i, args...);
}

// What goes in, and what the weights must be after all steps from the same start.
struct Work {
  explicit Work(int steps_in) : steps(steps_in), start(kLayers, Words(kWords)) {
    std::mt19937 random(22);
    const auto fill = [&](Words& words) { std::generate(words.begin(), words.end(), [&] { return random(); }); };
    for (int d = 0; d < 16; ++d) {
      fill(x.emplace_back(kWords));
      fill(label.emplace_back(kLabels));
    }
    for (Words& words : start) fill(words);
    end = start;
    for (int s = 0; s < steps; ++s) Step(s);
  }
  size_t Of(int step) const { return static_cast<size_t>(step) % x.size(); }
  void CheckEnd(const std::string& way, const std::vector<Words>& found) const {
    if (found != end) Fail("training step, " + way + ": the weights are wrong");
  }

  const int steps;
  std::vector<Words> x, label, start, end;

 private:
  void Step(int step) {
    std::array<Words, kLayers + 1> t;
    t.fill(Words(kWords));
    for (int64_t i = 0; i < kWords; ++i) {
      First()(i, x[Of(step)].data(), label[Of(step)].data(), t[0].data());
      for (size_t l = 0; l < kLayers; ++l) Layer()(i, t[l].data(), end[l].data(), t[l + 1].data());
      for (size_t l = 0; l < kLayers; ++l) end[l][static_cast<size_t>(i)] += t[kLayers][i] ^ (t[l][i] * 7);
    }
  }
};

class RawStep {
 public:
  explicit RawStep(const Work& work) : work_(work), stream_(MakeStream()), uploads_(MakeStream()) {
    for (uint32_t*& memory : t_) memory = MakeDeviceMemory<uint32_t>(kWords);
    for (uint32_t*& memory : g_) memory = MakeDeviceMemory<uint32_t>(kWords);
    for (uint32_t*& memory : w_) memory = MakeDeviceMemory<uint32_t>(kWords);
    for (Block& block : blocks_) {
      Check(cudaMallocHost(&block.pinned, (kWords + kLabels) * 4), "allocating pinned memory");
      block.x = MakeDeviceMemory<uint32_t>(kWords), block.label = MakeDeviceMemory<uint32_t>(kLabels);
      block.uploaded = MakeEvent(), block.free = MakeEvent();
      Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "capturing");
      Upload(block, stream_);
      Compute(block);
      cudaGraph_t graph = nullptr;
      Check(cudaStreamEndCapture(stream_, &graph), "capturing");
      Check(cudaGraphInstantiate(&block.exec, graph, 0), "instantiating");
      Check(cudaGraphUpload(block.exec, stream_), "uploading a graph");
    }
  }

  Sample Stream() {
    return Time("stream", [&](Block& block) {
      Upload(block, stream_);
      Compute(block);
    });
  }
  Sample Uploads() {
    return Time("uploads", [&](Block& block) {
      Upload(block, uploads_);
      Check(cudaEventRecord(block.uploaded, uploads_), "recording");
      Check(cudaStreamWaitEvent(stream_, block.uploaded, 0), "waiting");
      Compute(block);
    });
  }
  Sample Graph() {
    return Time("graph", [&](Block& block) { Check(cudaGraphLaunch(block.exec, stream_), "launching a graph"); });
  }

 private:
  struct Block {
    uint32_t *pinned = nullptr, *x = nullptr, *label = nullptr;
    cudaEvent_t uploaded = nullptr, free = nullptr;
    cudaGraphExec_t exec = nullptr;
  };

  static void Upload(const Block& block, cudaStream_t stream) {
    Check(cudaMemcpyAsync(block.x, block.pinned, kWords * 4, cudaMemcpyHostToDevice, stream), "uploading");
    Check(cudaMemcpyAsync(block.label, block.pinned + kWords, kLabels * 4, cudaMemcpyHostToDevice, stream),
          "uploading");
  }
  template <class F, class... Args>
  void Run(F f, Args... args) {
    ForEach<<<(kWords + 255) / 256, 256, 0, stream_>>>(f, args...);
  }
  void Compute(const Block& block) {
    Run(First(), block.x, block.label, t_[0]);
    for (size_t l = 0; l < kLayers; ++l) Run(Layer(), t_[l], w_[l], t_[l + 1]);
    for (size_t l = 0; l < kLayers; ++l) Run(Gradient(), t_[kLayers], t_[l], g_[l]);
    for (size_t l = 0; l < kLayers; ++l) Run(Update(), g_[l], w_[l]);
  }

  template <class Submit>
  Sample Time(const std::string& way, Submit submit) {
    for (size_t l = 0; l < kLayers; ++l) {
      Check(cudaMemcpy(w_[l], work_.start[l].data(), kWords * 4, cudaMemcpyHostToDevice), "setting weights");
    }
    const Clock::time_point begin = Clock::now();
    for (int s = 0; s < work_.steps; ++s) {
      Block& block = blocks_[static_cast<size_t>(s % kSlots)];
      Check(cudaEventSynchronize(block.free), "waiting");
      std::memcpy(block.pinned, work_.x[work_.Of(s)].data(), kWords * 4);
      std::memcpy(block.pinned + kWords, work_.label[work_.Of(s)].data(), kLabels * 4);
      submit(block);
      Check(cudaEventRecord(block.free, stream_), "recording");
    }
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    std::vector<Words> found(kLayers, Words(kWords));
    for (size_t l = 0; l < kLayers; ++l) {
      Check(cudaMemcpy(found[l].data(), w_[l], kWords * 4, cudaMemcpyDeviceToHost), "reading weights");
    }
    work_.CheckEnd(way, found);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  const Work& work_;
  const cudaStream_t stream_, uploads_;
  std::array<uint32_t*, kLayers + 1> t_{};
  std::array<uint32_t*, kLayers> g_{}, w_{};
  std::array<Block, kSlots> blocks_{};
};

std::string Named(std::string name, size_t number) { return name += std::to_string(number); }

class PenstockStep {
 public:
  PenstockStep(ps::Runtime& runtime, const Work& work, ps::Mode mode) : work_(work) {
    ps::Graph g("training step");
    x_ = g.Input<uint32_t>("x", kWords), label_ = g.Input<uint32_t>("label", kLabels);
    std::vector<ps::BufferHandle<uint32_t>> t, gradients;
    for (size_t l = 0; l <= kLayers; ++l) t.push_back(g.Buffer<uint32_t>(Named("t", l), kWords));
    for (size_t l = 0; l < kLayers; ++l) {
      gradients.push_back(g.Buffer<uint32_t>(Named("g", l), kWords));
      weights_.push_back(Must(runtime.MakeState<uint32_t>(Named("w", l), kWords)));
    }
    g.ParallelFor("first", kWords, First{}, ps::Read(x_), ps::Read(label_), ps::Write(t[0]));
    for (size_t l = 0; l < kLayers; ++l) {
      g.ParallelFor(Named("layer ", l), kWords, Layer{}, ps::Read(t[l]), ps::Read(weights_[l]), ps::Write(t[l + 1]));
    }
    for (size_t l = 0; l < kLayers; ++l) {
      g.ParallelFor(Named("gradient ", l), kWords, Gradient{}, ps::Read(t[kLayers]), ps::Read(t[l]),
                    ps::Write(gradients[l]));
    }
    for (size_t l = 0; l < kLayers; ++l) {
      g.ParallelFor(Named("update ", l), kWords, Update{}, ps::Read(gradients[l]), ps::ReadWrite(weights_[l]));
    }
    exec_ = Must(runtime.Compile(g, {.slots = kSlots, .mode = mode}));
    io_ = exec_.bindings();
  }

  Sample Run(const std::string& way) {
    for (size_t l = 0; l < kLayers; ++l) Must(weights_[l].Set(work_.start[l]));
    ps::Run last;
    const Clock::time_point begin = Clock::now();
    for (int s = 0; s < work_.steps; ++s) {
      last = Must(exec_.Launch(io_.Set(x_, work_.x[work_.Of(s)]).Set(label_, work_.label[work_.Of(s)])));
    }
    const Clock::time_point submitted = Clock::now();
    Must(last.Wait());
    const Clock::time_point end = Clock::now();
    std::vector<Words> found(kLayers, Words(kWords, 0x5A5A5A5A));
    for (size_t l = 0; l < kLayers; ++l) Must(weights_[l].Read(found[l]));
    work_.CheckEnd(way, found);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const Work& work_;
  ps::BufferHandle<uint32_t> x_, label_;
  std::vector<ps::State<uint32_t>> weights_;
  ps::Executable exec_;
  ps::Bindings io_;
};

constexpr const char *kStreamMode = "Penstock, streams", *kGraphMode = "Penstock, graphs", *kAutoMode = "Penstock";

int OnHostDevice(const std::string& missing) {
  const Work work(10);
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host"}));
  PenstockStep(runtime, work, ps::Mode::kStream).Run(kStreamMode);
  PenstockStep(runtime, work, ps::Mode::kGraph).Run(kGraphMode);
  Report("Training step").Skip(missing, "On a host device the Penstock half gave the right results.");
  return 0;
}

int Main(const Options& options) {
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return OnHostDevice(missing);
  Check(cudaSetDevice(0), "choosing device 0");
  const Work work(options.quick ? 20 : 1000);
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  RawStep raw(work);
  PenstockStep streams(runtime, work, ps::Mode::kStream), graphs(runtime, work, ps::Mode::kGraph),
      automatic(runtime, work, ps::Mode::kAuto);
  std::vector<Way> ways = {
      {Kind::kRaw, "one stream", [&] { return raw.Stream(); }, 0},
      {Kind::kRaw, "a stream for uploads", [&] { return raw.Uploads(); }, 0},
      {Kind::kRaw, "graphs", [&] { return raw.Graph(); }, 1},
      {Kind::kPenstock, kStreamMode, [&] { return streams.Run(kStreamMode); }, 0},
      {Kind::kPenstock, kGraphMode, [&] { return graphs.Run(kGraphMode); }, 1},
      {Kind::kPenstock, kAutoMode, [&] { return automatic.Run(kAutoMode); }, 1},
  };
  Measure(ways, 2, options.repeats);

  Report report("Training step");
  report.Note("Medians of " + std::to_string(options.repeats) + " rounds of " + std::to_string(work.steps) +
              " steps each, the ways in turn, on " + runtime.devices()[0].description +
              ": 18 nodes and 5 written "
              "States a step, inputs that are not pinned, three slots; the weights are checked after each round.");
  const double scale = 1.0 / work.steps;
  const auto total = [&](const Way& way) { return SpreadOf(way, &Sample::total, scale); };
  const Spread by_streams = total(Best(ways, Kind::kRaw, &Sample::total, 0)),
               by_graphs = total(Best(ways, Kind::kRaw, &Sample::total, 1));
  report.Compare("a step on streams; raw: streams by hand", "us", by_streams, total(Find(ways, kStreamMode)), 1.5);
  report.Compare("a step as a graph; raw: graphs by hand", "us", by_graphs, total(Find(ways, kGraphMode)), 1.2);
  report.Compare("a step by default; raw: graphs by hand", "us", by_graphs, total(Find(ways, kAutoMode)), 1.2);
  report.Details("a step", "us", ways, scale);
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(bench::ParseOptions(argc, argv, "training_step",
                                           "A short training step with five States, by hand and with Penstock."));
  });
}
