// Primer: what an operation costs. Runs a few operations over arrays of several sizes, each as a graph of its own, and
// reads from the runtime's profile how long they took. operation_timing.md explains it.
//
//   operation_timing [--devices cuda | host] [--elements 16777216]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kRuns = 20;  // of each graph; the table has medians
constexpr double kTolerance = 1e-6;  // relative

// Each operation reads two floats and writes one, so they differ in their arithmetic only.
struct Add {
  PS_HOST_DEVICE float operator()(float x, float y) const { return x + y; }
};
struct MultiplyAdd {
  PS_HOST_DEVICE float operator()(float x, float y) const { return x * y + y; }
};
struct Exp {
  PS_HOST_DEVICE float operator()(float x, float y) const { return expf(x) + y; }
};
struct Root {
  PS_HOST_DEVICE float operator()(float x, float y) const { return sqrtf(x) / y; }
};

// Two arrays on the host and on the device, and room for results there.
struct Data {
  std::vector<float> host_x, host_y;
  ps::State<float> x, y, z;
  ps::State<double> sum;
};

absl::StatusOr<Data> MakeData(ps::Runtime& runtime, int64_t n) {
  Data data;
  for (int64_t i = 0; i < n; ++i) {
    data.host_x.push_back(static_cast<float>(i % 256) / 256);
    data.host_y.push_back(static_cast<float>(1 + i % 101) / 64);
  }
  PS_ASSIGN_OR_RETURN(data.x, runtime.MakeState<float>("x", n, data.host_x));
  PS_ASSIGN_OR_RETURN(data.y, runtime.MakeState<float>("y", n, data.host_y));
  PS_ASSIGN_OR_RETURN(data.z, runtime.MakeState<float>("z", n));
  PS_ASSIGN_OR_RETURN(data.sum, runtime.MakeState<double>("sum", 1));
  return data;
}

bool IsNear(double found, double expected) { return std::abs(found - expected) <= kTolerance * std::abs(expected); }

// One run after the other, so that nothing else is on the device. The profile keeps what they took.
absl::Status Repeat(ps::Runtime& runtime, const ps::Graph& graph) {
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  for (int r = 0; r < kRuns; ++r) {
    PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch());
    PS_RETURN_IF_ERROR(run.Wait());
  }
  return absl::OkStatus();
}

// z = op(x, y), of so many floating-point operations for each element. `plain` computes the same on the host.
template <class Op>
absl::Status Time(ps::Runtime& runtime, Data& data, const char* name, Op op, int operations,
                  double (*plain)(double x, double y)) {
  const size_t n = data.host_x.size();
  ps::Graph graph(ps::Name(name, n));  // "add 65536"
  ps::Transform(graph, name, ps::Read(data.x), ps::Read(data.y), ps::Write(data.z), op)
      .Flops(static_cast<double>(n) * operations);
  PS_RETURN_IF_ERROR(Repeat(runtime, graph));

  std::vector<float> z(n);
  PS_RETURN_IF_ERROR(data.z.Read(z));
  for (size_t i = 0; i < n; ++i) {
    if (!IsNear(double{z[i]}, plain(double{data.host_x[i]}, double{data.host_y[i]})))
      return absl::InternalError(std::string(name) + " is wrong at element " + std::to_string(i));
  }
  return absl::OkStatus();
}

// The sum of y: many values become one.
absl::Status TimeSum(ps::Runtime& runtime, Data& data) {
  ps::Graph graph(ps::Name("sum", data.host_y.size()));
  graph.Reduce("sum", ps::Read(data.y), ps::Write(data.sum)).Flops(static_cast<double>(data.host_y.size()));
  PS_RETURN_IF_ERROR(Repeat(runtime, graph));

  std::vector<double> sum(1);
  PS_RETURN_IF_ERROR(data.sum.Read(sum));
  double expected = 0;
  for (const float y : data.host_y) expected += double{y};
  return IsNear(sum[0], expected) ? absl::OkStatus() : absl::InternalError("the sum is wrong");
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Prints what the profile says of each graph, a row of the table.
void Show(const ps::Profile& profile) {
  std::printf("                        launch us     run us  kernel us    GB/s  of add  GFLOP/s\n");
  double rate_of_add = 0;
  for (const ps::Profile::Graph& graph : profile.graphs) {
    std::vector<double> launches, runs, kernels(kRuns);
    for (const ps::Span& span : profile.spans) {
      if (span.executable != graph.executable) continue;
      const double us = span.end_us - span.begin_us;
      if (span.kind == ps::SpanKind::kSubmit) launches.push_back(us);
      if (span.kind == ps::SpanKind::kRun) runs.push_back(us);
      if (span.kind == ps::SpanKind::kKernel) kernels[static_cast<size_t>(span.run)] += us;  // a sum has several
    }
    double bytes = 0, operations = 0;
    for (const ps::Profile::Node& node : graph.nodes) {
      bytes += static_cast<double>(node.read_bytes + node.written_bytes);
      operations += node.flops;
    }
    const double us = Median(kernels), rate = bytes / us / 1e3;
    if (graph.name.starts_with("add")) rate_of_add = rate;  // the first of each size
    std::printf("%-22s %10.1f %10.1f %10.1f %7.2f %5.0f %% %8.2f\n", graph.name.c_str(), Median(launches), Median(runs),
                us, rate, 100 * rate / rate_of_add, operations / us / 1e3);
  }
}

absl::Status Run(const std::string& devices, int64_t elements) {
  if (elements < 256) return absl::InvalidArgumentError("give 256 elements or more");
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices, .profile_spans = 100'000}));
  for (const int64_t n : {int64_t{1}, elements / 256, elements / 16, elements}) {
    PS_ASSIGN_OR_RETURN(Data data, MakeData(runtime, n));
    const auto time = [&](const char* name, auto op, int operations, double (*plain)(double, double)) {
      return Time(runtime, data, name, op, operations, plain);
    };
    PS_RETURN_IF_ERROR(time("add", Add{}, 1, [](double x, double y) { return x + y; }));
    PS_RETURN_IF_ERROR(time("multiply-add", MultiplyAdd{}, 2, [](double x, double y) { return x * y + y; }));
    PS_RETURN_IF_ERROR(time("exp", Exp{}, 2, [](double x, double y) { return std::exp(x) + y; }));
    PS_RETURN_IF_ERROR(time("root", Root{}, 2, [](double x, double y) { return std::sqrt(x) / y; }));
    PS_RETURN_IF_ERROR(TimeSum(runtime, data));
  }
  Show(runtime.Profile());
  std::printf("on %s, medians of %d runs; all results are right\n", runtime.devices()[0].name.c_str(), kRuns);
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string devices;
  int64_t elements = 1 << 24;
  absl::Status status;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--devices") devices = value;
    else if (flag == "--elements") elements = std::atoll(value.c_str());
    else status = absl::InvalidArgumentError("there is no " + flag + ", but --devices LIST and --elements N");
  }
  if (status.ok()) status = Run(devices, elements);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
