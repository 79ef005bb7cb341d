// Primer: training steps of a small network that learns a function of two numbers. The layers, the loss, its
// derivatives and the descent are nodes of one graph, and the weights are States. mlp_step.md explains it.
//
//   mlp_step [--devices cuda | host]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kBatch = 64, kInputs = 3, kHidden = 16, kOutputs = 1;
constexpr int kSteps = 400, kShown = 100;  // each 100th step is shown
constexpr double kRate = 0.2;
constexpr double kTolerance = 1e-9;  // against plain loops
constexpr double kChange = 1e-5, kChangeTolerance = 1e-7;  // of a weight for a finite difference, and against those

using Matrix = ps::View<double>;
using Given = ps::View<const double>;

// A row of x times the rows of the weights, one for each output of the layer.
struct Layer {
  bool is_hidden;
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given x, Given w, Matrix y) const {
    double sum = 0;
    for (int64_t k = 0; k < x.width; ++k) sum += w(i.x, k) * x(i.y, k);
    y(i.y, i.x) = is_hidden ? tanh(sum) : sum;
  }
};
// The loss is the mean of (y - wanted)^2. This is what a row adds to it ...
struct Loss {
  PS_HOST_DEVICE double operator()(int64_t i, const double* y, const double* wanted) const {
    return (y[i] - wanted[i]) * (y[i] - wanted[i]) / kBatch;
  }
};
// ... and this is its derivative by y.
struct LossByY {
  PS_HOST_DEVICE double operator()(double y, double wanted) const { return 2 * (y - wanted) / kBatch; }
};
// The derivative by a sum in the hidden layer: back through the output's weights, and through tanh.
struct LossBySum {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given by_y, Given w, Given hidden, Matrix by_sum) const {
    double sum = 0;
    for (int64_t o = 0; o < by_y.width; ++o) sum += by_y(i.y, o) * w(o, i.x);
    by_sum(i.y, i.x) = sum * (1 - hidden(i.y, i.x) * hidden(i.y, i.x));
  }
};
// The derivative by a weight has a part from each row of the batch.
struct LossByWeight {
  PS_HOST_DEVICE void operator()(ps::Index2 i, Given x, Given by_sum, Matrix by_w) const {
    double sum = 0;
    for (int64_t row = 0; row < x.height; ++row) sum += by_sum(row, i.y) * x(row, i.x);
    by_w(i.y, i.x) = sum;
  }
};
struct Descend {
  PS_HOST_DEVICE double operator()(double w, double by_w) const { return w - kRate * by_w; }
};

// On the host: the weights of all layers, those of the hidden layer first; or the derivatives by them.
using Weights = std::vector<double>;
std::span<double> OfHidden(Weights& w) { return std::span(w).first(kHidden * kInputs); }
std::span<double> OfOutput(Weights& w) { return std::span(w).last(kOutputs * kHidden); }

// What is learned from: a function on a grid. A third input, always 1, gives each hidden unit its bias.
struct Data {
  std::vector<double> x, wanted;
  Data() {
    for (int i = 0; i < kBatch; ++i) {
      const int column = i % 8, row = i / 8;
      const double a = column / 3.5 - 1, b = row / 3.5 - 1;  // from -1 to 1
      x.insert(x.end(), {a, b, 1});
      wanted.push_back(std::sin(3 * a * b));
    }
  }
};

// The loss by plain loops, a row after the other. Adds the derivatives to `by_w`, unless that is null.
double PlainLoss(const Data& data, const Weights& w, Weights* by_w) {
  const double* output = &w[kHidden * kInputs];
  double loss = 0;
  for (int64_t row = 0; row < kBatch; ++row) {
    const double* x = &data.x[row * kInputs];
    double hidden[kHidden], y = 0;
    for (int64_t h = 0; h < kHidden; ++h) {
      hidden[h] = std::tanh(w[3 * h] * x[0] + w[3 * h + 1] * x[1] + w[3 * h + 2]);
      y += output[h] * hidden[h];
    }
    const double error = y - data.wanted[row];
    loss += error * error / kBatch;
    for (int64_t h = 0; by_w != nullptr && h < kHidden; ++h) {
      const double by_sum = 2 * error / kBatch * output[h] * (1 - hidden[h] * hidden[h]);
      for (int64_t k = 0; k < kInputs; ++k) (*by_w)[kInputs * h + k] += by_sum * x[k];
      (*by_w)[kHidden * kInputs + h] += 2 * error / kBatch * hidden[h];
    }
  }
  return loss;
}
// The derivatives without their formulas: how much the loss changes with each weight.
Weights FiniteDifferences(const Data& data, Weights w) {
  Weights by_w;
  for (double& weight : w) {
    const double at = weight;
    weight = at + kChange;
    const double above = PlainLoss(data, w, nullptr);
    weight = at - kChange;
    by_w.push_back((above - PlainLoss(data, w, nullptr)) / (2 * kChange));
    weight = at;
  }
  return by_w;
}
absl::Status Compare(const char* what, const Weights& found, const Weights& expected, double tolerance) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= tolerance))
      return absl::InternalError(std::string(what) + " " + std::to_string(i) + " is wrong");
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& devices) {
  const Data data;
  Weights plain, by_w((kInputs + kOutputs) * kHidden), found = by_w;
  for (size_t i = 0; i < by_w.size(); ++i) plain.push_back(std::sin(static_cast<double>(i * i)));
  double loss = 0, loss_before = 0;
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  PS_ASSIGN_OR_RETURN(auto w_hidden, runtime.MakeState<double>("w hidden", {kHidden, kInputs}, OfHidden(plain)));
  PS_ASSIGN_OR_RETURN(auto w_output, runtime.MakeState<double>("w output", {kOutputs, kHidden}, OfOutput(plain)));

  ps::Graph graph("step");
  auto x = graph.Input<double>("x", {kBatch, kInputs}), wanted = graph.Input<double>("wanted", {kBatch, kOutputs});
  auto hidden = graph.Buffer<double>("hidden", {kBatch, kHidden}), y = graph.Buffer<double>("y", {kBatch, kOutputs});
  auto by_sum = graph.Buffer<double>("by sum", {kBatch, kHidden});
  auto by_y = graph.Buffer<double>("by y", {kBatch, kOutputs});
  auto by_hidden = graph.Output<double>("by w hidden", {kHidden, kInputs});
  auto by_output = graph.Output<double>("by w output", {kOutputs, kHidden});
  auto loss_of_run = graph.Output<double>("loss", 1);
  // Forward.
  graph.ParallelFor("hidden", {kBatch, kHidden}, Layer{true}, ps::Read(x), ps::Read(w_hidden), ps::Write(hidden));
  graph.ParallelFor("output", {kBatch, kOutputs}, Layer{false}, ps::Read(hidden), ps::Read(w_output), ps::Write(y));
  graph.TransformReduce("loss", kBatch, Loss{}, ps::Plus(), 0.0, ps::Read(y), ps::Read(wanted), ps::Write(loss_of_run));
  // Backward.
  ps::Transform(graph, "by y", ps::Read(y), ps::Read(wanted), ps::Write(by_y), LossByY{});
  graph.ParallelFor("by w output", {kOutputs, kHidden}, LossByWeight{}, ps::Read(hidden), ps::Read(by_y),
                    ps::Write(by_output));
  graph.ParallelFor("by sum", {kBatch, kHidden}, LossBySum{}, ps::Read(by_y), ps::Read(w_output), ps::Read(hidden),
                    ps::Write(by_sum));
  graph.ParallelFor("by w hidden", {kHidden, kInputs}, LossByWeight{}, ps::Read(x), ps::Read(by_sum),
                    ps::Write(by_hidden));
  // Gradient descent.
  ps::Transform(graph, "descend hidden", ps::Read(w_hidden), ps::Read(by_hidden), ps::Write(w_hidden), Descend{});
  ps::Transform(graph, "descend output", ps::Read(w_output), ps::Read(by_output), ps::Write(w_output), Descend{});
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  ps::Bindings io = exec.bindings();
  io.Set(x, data.x).Set(wanted, data.wanted).Set(loss_of_run, loss);
  io.Set(by_hidden, OfHidden(by_w)).Set(by_output, OfOutput(by_w));
  for (int step = 0; step <= kSteps; ++step) {
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io));
    PS_RETURN_IF_ERROR(run.Wait());

    Weights expected(by_w.size());
    const double expected_loss = PlainLoss(data, plain, &expected);
    if (!(std::abs(loss - expected_loss) <= kTolerance)) return absl::InternalError("the loss is wrong");
    PS_RETURN_IF_ERROR(Compare("the derivative by weight", by_w, expected, kTolerance));
    if (step % kShown == 0) {
      PS_RETURN_IF_ERROR(Compare("by finite differences, the derivative by weight", by_w,
                                 FiniteDifferences(data, plain), kChangeTolerance));
      if (step > 0 && loss >= loss_before) return absl::InternalError("nothing was learned");
      std::printf("step %3d: the loss is %.6f\n", step, loss);
      loss_before = loss;
    }
    for (size_t i = 0; i < plain.size(); ++i) plain[i] -= kRate * expected[i];
  }
  PS_RETURN_IF_ERROR(w_hidden.Read(OfHidden(found)));
  PS_RETURN_IF_ERROR(w_output.Read(OfOutput(found)));
  PS_RETURN_IF_ERROR(Compare("weight", found, plain, kTolerance));
  std::printf("all losses, derivatives and weights are right\n");
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const bool has_devices = argc == 3 && std::string(argv[1]) == "--devices";
  absl::Status status = absl::InvalidArgumentError("usage: mlp_step [--devices cuda | host]");
  if (has_devices || argc == 1) status = Run(has_devices ? argv[2] : "");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
