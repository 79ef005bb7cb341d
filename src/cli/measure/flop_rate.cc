#include "src/cli/measure/flop_rate.h"

#include <cstddef>
#include <vector>

#include "src/cli/measure/chain.h"

namespace penstock::cli::measure {
namespace {

#ifdef __CUDACC__
constexpr bool kHasKernel = true;
#else
constexpr bool kHasKernel = false;
#endif

constexpr int kChains = 8;  // so many multiply-adds of a thread do not wait for each other
constexpr int kSteps = 1024;  // even
constexpr double kFlopsPerElement = 2.0 * kChains * kSteps;
constexpr float kChainGap = 1.0F / 1024;

// Each step makes 1 - x of x, so that all bits go on changing, without rounding, and in the end every value is as it
// was. The factors are not constants, or a compiler would leave the product out.
struct MultiplyAdd {
  float factor = -1, summand = 1;

  PENSTOCK_HOST_DEVICE void operator()(int64_t i, float* values) const {
    float x[kChains];
    for (int c = 0; c < kChains; ++c) x[c] = values[i] + static_cast<float>(c) * kChainGap;
    for (int s = 0; s < kSteps; ++s) {
      for (int c = 0; c < kChains; ++c) x[c] = x[c] * factor + summand;
    }
    float sum = 0;
    for (int c = 0; c < kChains; ++c) sum += x[c];
    values[i] = sum / kChains - static_cast<float>(kChains - 1) / 2 * kChainGap;
  }
};

// Enough to fill the device; of a host device a node then takes some 10 ms.
int64_t ElementsFor(const Device& device, bool quick) {
  if (!device.is_cuda) return quick ? 1 << 8 : 1 << 14;
  return quick ? 1 << 16 : 1 << 22;
}

}  // namespace

absl::StatusOr<double> FlopRate(Runtime& runtime, int device, bool quick, const Effort& effort) {
  const Device& of = runtime.devices()[static_cast<size_t>(device)];
  if (of.is_cuda && !kHasKernel) return 0.0;
  const int64_t elements = ElementsFor(of, quick);
  std::vector<float> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 512) / 1024;
  PENSTOCK_ASSIGN_OR_RETURN(State<float> state,
                            runtime.MakeState<float>("values", elements, values, {.device = device}));
  const auto declare = [&](Graph& graph, int nodes) {
    for (int i = 0; i < nodes; ++i) {
      graph.ParallelFor(Name("multiply", i), elements, MultiplyAdd(), ReadWrite(state));
    }
    return Chain::Bind();
  };
  PENSTOCK_ASSIGN_OR_RETURN(Chain chain,
                            Chain::Lasting(runtime, declare, effort.run_us, Chain::kMostNodes, {.device = device}));
  PENSTOCK_ASSIGN_OR_RETURN(const double us, MedianOf(effort, [&] { return chain.Time(); }));
  std::vector<float> computed(values.size());
  PENSTOCK_RETURN_IF_ERROR(state.Read(computed));
  if (computed != values) {
    return absl::DataLossError(of.name +
                               ": multiply-adds have given other values than they must; the figures are worth "
                               "nothing; look for a fault of the device, its driver or Penstock");
  }
  return us > 0 ? kFlopsPerElement * static_cast<double>(elements) * chain.nodes() / us / 1e3 : 0;
}

}  // namespace penstock::cli::measure
