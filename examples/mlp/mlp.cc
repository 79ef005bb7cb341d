// A network of dense layers, trained on two devices: the first half of the layers is on the first device, the other
// half on the last. A step's batch is cut into micro-batches, so that one device works on one while the other has the
// next. The layers' weights are States where the layer is; what goes from layer to layer moves by itself.
//
//   mlp [--devices cuda | host:2] [--steps 40] [--micro-batches 4]
//
// Every sum has one order and each of its steps one rounding (fmaf), so the weights are the same on one device and on
// two, on GPUs and on CPUs, whatever the number of micro-batches: the program compares them exactly with those of a
// plain loop over the whole batch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kBatch = 64, kBatches = 4;  // rows of a step, and how many different batches there are
constexpr int64_t kWidths[] = {16, 48, 48, 48, 4};  // what goes into each layer, and what comes out of the last
constexpr int kLayers = 4;
constexpr float kRate = 0.004f;

using Plane = ps::View<float>;
using Given = ps::View<const float>;

// Row i.y of a layer's output. Weights have a row an output, the last element of which is added. All but the last layer
// pass on what is positive.
struct Forward {
  bool last;
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given x, Given w, Plane y) const {
    float sum = w(i.x, x.width);
    for (int64_t k = 0; k < x.width; ++k) sum = fmaf(x(i.y, k), w(i.x, k), sum);
    y(i.y, i.x) = last || sum > 0 ? sum : 0;
  }
};
// The loss is the sum of the errors' squares; its gradient is here half of the mathematical one.
struct Error {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given y, Given wanted, Plane dy) const {
    dy(i.y, i.x) = y(i.y, i.x) - wanted(i.y, i.x);
  }
};
struct Square {
  PS_HOST_DEVICE double operator()(ps::Index2 i, Given dy) const { return double{dy(i.y, i.x)} * double{dy(i.y, i.x)}; }
};
// The gradient of a layer's input, which was the output of the layer before.
struct Backward {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given x, Given w, Given dy, Plane dx) const {
    float sum = 0;
    for (int64_t o = 0; o < dy.width; ++o) sum = fmaf(dy(i.y, o), w(o, i.x), sum);
    dx(i.y, i.x) = x(i.y, i.x) > 0 ? sum : 0;
  }
};
// Adds the rows of a micro-batch to the gradient of the weights, one after the other.
struct AddGradient {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given x, Given dy, Plane gradient) const {
    float sum = gradient(i.y, i.x);
    for (int64_t row = 0; row < x.height; ++row) sum = fmaf(dy(row, i.y), i.x < x.width ? x(row, i.x) : 1, sum);
    gradient(i.y, i.x) = sum;
  }
};
struct Descend {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given gradient, Plane w) const {
    w(i.y, i.x) = fmaf(-kRate, gradient(i.y, i.x), w(i.y, i.x));
  }
};

struct Options {
  std::string devices;
  int steps = 40, micro_batches = 4;
};

// What is learned from: the outputs are a fixed function of the inputs.
struct Data {
  std::vector<std::vector<float>> x, wanted, weights;

  Data() {
    std::mt19937 random(7);
    const auto draw = [&random] { return static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.f; };
    for (int b = 0; b < kBatches; ++b) {
      std::vector<float>& in = x.emplace_back(static_cast<size_t>(kBatch * kWidths[0]));
      std::generate(in.begin(), in.end(), draw);
      std::vector<float>& out = wanted.emplace_back();
      for (int64_t row = 0; row < kBatch; ++row) {
        const float* of = &in[row * kWidths[0]];
        for (int64_t o = 0; o < kWidths[kLayers]; ++o) out.push_back(of[o] * of[o + 1] + std::abs(of[o + 4]));
      }
    }
    for (int l = 0; l < kLayers; ++l) {
      std::vector<float>& w = weights.emplace_back(static_cast<size_t>(kWidths[l + 1] * (kWidths[l] + 1)));
      const float scale = std::sqrt(3.f / static_cast<float>(kWidths[l]));
      std::generate(w.begin(), w.end(), [&] { return scale * draw(); });
    }
  }
};

// The step's graph.
class Network {
 public:
  Network(ps::Graph& graph, const std::vector<ps::State<float>>& weights, int micro_batches)
      : graph_(graph), weights_(weights), rows_(kBatch / micro_batches) {
    x_ = graph.Input<float>("x", {kBatch, kWidths[0]});
    wanted_ = graph.Input<float>("wanted", {kBatch, kWidths[kLayers]});
    losses_ = graph.Output<double>("losses", micro_batches);
    for (int l = 0; l < kLayers; ++l) {
      gradients_.push_back(graph.Buffer<float>(ps::Name("gradient", l), {kWidths[l + 1], kWidths[l] + 1}));
      graph.Fill(ps::Name("clear", l), gradients_[l], 0).On(DeviceOf(l));
    }
    for (int m = 0; m < micro_batches; ++m) Pass(m);
    for (int l = 0; l < kLayers; ++l) {
      graph
          .ParallelFor(ps::Name("descend", l), {kWidths[l + 1], kWidths[l] + 1}, Descend{}, ps::Read(gradients_[l]),
                       ps::ReadWrite(weights_[l]))
          .On(DeviceOf(l));
    }
  }

  ps::BufferHandle<float> x() const { return x_; }
  ps::BufferHandle<float> wanted() const { return wanted_; }
  ps::BufferHandle<double> losses() const { return losses_; }  // of each micro-batch

 private:
  int DeviceOf(int layer) const { return weights_[layer].device(); }

  // One micro-batch, forth and back.
  void Pass(int m) {
    const auto scope = graph_.Scope(ps::Name("micro-batch", m));
    const auto rows_of = [&](int64_t width) { return ps::Slice({m * rows_, 0}, {rows_, width}); };
    std::vector<ps::BufferHandle<float>> y, dy;  // what leaves each layer
    for (int l = 0; l < kLayers; ++l) {
      y.push_back(graph_.Buffer<float>(ps::Name("y", l), {rows_, kWidths[l + 1]}));
      dy.push_back(graph_.Buffer<float>(ps::Name("dy", l), {rows_, kWidths[l + 1]}));
    }
    const auto entering = [&](int l) { return l == 0 ? ps::Read(x_, rows_of(kWidths[0])) : ps::Read(y[l - 1]); };
    for (int l = 0; l < kLayers; ++l) {
      graph_
          .ParallelFor(ps::Name("forward", l), {rows_, kWidths[l + 1]}, Forward{l == kLayers - 1}, entering(l),
                       ps::Read(weights_[l]), ps::Write(y[l]))
          .On(DeviceOf(l));
    }
    const int last = DeviceOf(kLayers - 1);
    const int64_t outputs = kWidths[kLayers];
    graph_
        .ParallelFor("error", {rows_, outputs}, Error{}, ps::Read(y.back()), ps::Read(wanted_, rows_of(outputs)),
                     ps::Write(dy.back()))
        .On(last);
    graph_
        .TransformReduce("loss", {rows_, outputs}, Square{}, ps::Plus(), 0.0, ps::Read(dy.back()),
                         ps::Write(losses_, ps::Slice(m, 1)))
        .On(last);
    for (int l = kLayers - 1; l >= 0; --l) {
      graph_
          .ParallelFor(ps::Name("add gradient", l), {kWidths[l + 1], kWidths[l] + 1}, AddGradient{}, entering(l),
                       ps::Read(dy[l]), ps::ReadWrite(gradients_[l]))
          .On(DeviceOf(l));
      if (l == 0) break;
      graph_
          .ParallelFor(ps::Name("backward", l), {rows_, kWidths[l]}, Backward{}, ps::Read(y[l - 1]),
                       ps::Read(weights_[l]), ps::Read(dy[l]), ps::Write(dy[l - 1]))
          .On(DeviceOf(l));
    }
  }

  ps::Graph& graph_;
  const std::vector<ps::State<float>>& weights_;
  const int64_t rows_;
  ps::BufferHandle<float> x_, wanted_;
  ps::BufferHandle<double> losses_;
  std::vector<ps::BufferHandle<float>> gradients_;
};

// A step of the same network on the host, a row of the batch after the other. Returns the loss.
double PlainStep(const std::vector<float>& x, const std::vector<float>& wanted, std::vector<std::vector<float>>& w) {
  std::vector<std::vector<float>> gradient;
  for (const std::vector<float>& of : w) gradient.emplace_back(of.size());
  double loss = 0;
  for (int64_t row = 0; row < kBatch; ++row) {
    std::vector<std::vector<float>> a = {{&x[row * kWidths[0]], &x[row * kWidths[0]] + kWidths[0]}};
    for (int l = 0; l < kLayers; ++l) {
      std::vector<float>& out = a.emplace_back();
      for (int64_t o = 0; o < kWidths[l + 1]; ++o) {
        const float* row_of_w = &w[l][o * (kWidths[l] + 1)];
        float sum = row_of_w[kWidths[l]];
        for (int64_t k = 0; k < kWidths[l]; ++k) sum = std::fma(a[l][k], row_of_w[k], sum);
        out.push_back(l + 1 < kLayers ? std::max(sum, 0.f) : sum);
      }
    }
    std::vector<float> d = a.back();
    for (size_t o = 0; o < d.size(); ++o) {
      d[o] -= wanted[row * kWidths[kLayers] + static_cast<int64_t>(o)];
      loss += double{d[o]} * double{d[o]};
    }
    for (int l = kLayers - 1; l >= 0; --l) {
      const int64_t stride = kWidths[l] + 1;
      std::vector<float> before(static_cast<size_t>(kWidths[l]));
      for (int64_t o = 0; o < kWidths[l + 1]; ++o) {
        float* g = &gradient[l][o * stride];
        for (int64_t k = 0; k < kWidths[l]; ++k) {
          g[k] = std::fma(d[o], a[l][k], g[k]);
          before[k] = std::fma(d[o], w[l][o * stride + k], before[k]);
        }
        g[kWidths[l]] += d[o];
      }
      for (int64_t k = 0; k < kWidths[l]; ++k) before[k] = a[l][k] > 0 ? before[k] : 0;
      d = before;
    }
  }
  for (int l = 0; l < kLayers; ++l) {
    for (size_t i = 0; i < w[l].size(); ++i) w[l][i] = std::fma(-kRate, gradient[l][i], w[l][i]);
  }
  return loss;
}

absl::Status Train(const Options& options) {
  Data data;
  std::vector<double> losses(static_cast<size_t>(options.micro_batches));
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = options.devices}));
  const int last = static_cast<int>(runtime.devices().size()) - 1;
  std::vector<ps::State<float>> weights;
  for (int l = 0; l < kLayers; ++l) {
    PS_ASSIGN_OR_RETURN(weights.emplace_back(),
                        runtime.MakeState<float>(ps::Name("weights", l), {kWidths[l + 1], kWidths[l] + 1},
                                                 data.weights[l], {.device = l < kLayers / 2 ? 0 : last}));
  }
  ps::Graph graph("step");
  const Network network(graph, weights, options.micro_batches);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  ps::Bindings io = exec.bindings();
  io.Set(network.losses(), losses);
  double first = 0, latest = 0;
  for (int step = 0; step < options.steps; ++step) {
    const std::vector<float>&x = data.x[step % kBatches], &wanted = data.wanted[step % kBatches];
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io.Set(network.x(), x).Set(network.wanted(), wanted)));
    PS_RETURN_IF_ERROR(run.Wait());
    double loss = 0;
    for (const double part : losses) loss += part;
    const double expected = PlainStep(x, wanted, data.weights);
    if (!(std::abs(loss - expected) <= 1e-12 * expected)) {
      return absl::InternalError("step " + std::to_string(step) + ": the loss is " + std::to_string(loss) +
                                 " and should be " + std::to_string(expected));
    }
    (step == 0 ? first : latest) = loss;
  }
  for (int l = 0; l < kLayers; ++l) {
    std::vector<float> found(data.weights[l].size());
    PS_RETURN_IF_ERROR(weights[l].Read(found));
    if (found != data.weights[l])
      return absl::InternalError("the weights of layer " + std::to_string(l) + " are wrong");
  }
  if (!(latest < first)) return absl::InternalError("nothing was learned");
  std::printf(
      "%d steps of %d micro-batches on %d devices: the loss fell from %.2f to %.2f, and all weights are right\n",
      options.steps, options.micro_batches, last > 0 ? 2 : 1, first, latest);
  return absl::OkStatus();
}

absl::Status Misused(const std::string& what) {
  return absl::InvalidArgumentError(what + "; usage: mlp [--devices cuda | host:2] [--steps 40] [--micro-batches 4]");
}

absl::Status Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--devices") options.devices = argv[i + 1];
    else if (flag == "--steps") options.steps = std::atoi(argv[i + 1]);
    else if (flag == "--micro-batches") options.micro_batches = std::atoi(argv[i + 1]);
    else return Misused("there is no " + flag);
  }
  if (argc % 2 == 0) return Misused(std::string(argv[argc - 1]) + " lacks a value");
  if (options.steps < 10) return absl::InvalidArgumentError("give 10 steps or more: fewer teach little");
  if (options.micro_batches < 1 || kBatch % options.micro_batches != 0)
    return absl::InvalidArgumentError("give a number of micro-batches that divides " + std::to_string(kBatch));
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Options options;
  absl::Status status = Parse(argc, argv, options);
  if (status.ok()) status = Train(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
