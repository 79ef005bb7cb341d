#include "tests/fuzz/check_bytes.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "graph/plan.h"
#include "tests/fuzz/hostile_graph.h"
#include "tests/fuzz/hostile_launch.h"
#include "tests/graph/oracle.h"
#include "tests/graph/shape_oracle.h"
#include "tests/graph/simulation.h"

namespace penstock::fuzz {
namespace {

using graph::Plan;
using graph::PlanOptions;

// Two host devices, kept until the process ends: what every input runs on.
Runtime& SharedRuntime() {
  static auto* const runtime = [] {
    RuntimeOptions options;
    options.devices = "host:2";
    options.workers = 2;
    options.host_device_threads = 1;
    absl::StatusOr<Runtime> made = Runtime::Create(options);
    if (!made.ok()) std::abort();
    return new Runtime(*std::move(made));
  }();
  return *runtime;
}

PlanOptions TwoHosts() {
  PlanOptions options;
  options.devices = {{"host:0", false, 0, int64_t{1} << 33}, {"host:1", false, 0, int64_t{1} << 33}};
  options.slots = 2;
  return options;
}

// Anything a list of devices and their limits can be.
PlanOptions OddOptions(ByteSource& bytes, size_t nodes) {
  constexpr int64_t kMemory[] = {0, -1, 1, 256, 4096, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  constexpr int32_t kOdd[] = {INT32_MIN, -1, 0, 1, 2, 3, 1024, INT32_MAX};
  constexpr double kCosts[] = {-1, 0, 1, 1e300, 5e-324, 1000};
  PlanOptions options;
  for (int i = bytes.Below(4); i > 0; --i) {
    const bool cuda = bytes.Chance(128);
    options.devices.push_back({cuda ? "cuda:0" : "host:0", cuda, bytes.Chance(64), kMemory[bytes.Below(8)]});
  }
  options.default_device = bytes.Chance(32) ? kOdd[bytes.Below(8)] : 0;
  options.max_lanes = kOdd[bytes.Below(8)];
  options.slots = kOdd[bytes.Below(8)];
  if (nodes == 0 || !bytes.Chance(128)) return options;
  for (size_t i = 0; i < nodes; ++i) options.costs.push_back(kCosts[bytes.Below(6)]);
  if (bytes.Chance(16)) options.costs.back() = std::numeric_limits<double>::quiet_NaN();
  if (bytes.Chance(16)) options.costs[0] = std::numeric_limits<double>::infinity();
  return options;
}

// What is not small cannot be simulated: its contents would take memory.
std::string CheckPlan(const HostileGraph& hostile, const Plan& plan) {
  const Model& model = hostile.graph.model();
  std::string problem = CheckShape(model, plan);
  if (problem.empty()) problem = CheckOrder(model, plan);
  if (problem.empty()) problem = graph::CheckFinish(plan);
  if (problem.empty() && hostile.small) problem = graph::Simulate(model, plan, 1);
  if (!problem.empty()) return problem + "\n" + PrintText(plan, model);
  return PrintText(plan, model).empty() || PrintDot(plan, model).empty() ? "a plan prints as nothing" : "";
}

}  // namespace

Outcome CheckBytes(std::span<const uint8_t> input) {
  ByteSource bytes(input);
  const HostileGraph hostile(bytes);
  const Model& model = hostile.graph.model();
  Outcome outcome;

  const absl::StatusOr<Plan> plan = MakePlan(model, TwoHosts());
  outcome.accepted = plan.ok();
  outcome.problem = CheckRefusal(plan.status(), hostile.known, false);
  if (plan.ok() && outcome.problem.empty()) outcome.problem = CheckPlan(hostile, *plan);
  if (!outcome.problem.empty()) return outcome;

  if (plan.ok() && hostile.small) {
    outcome.ran = true;
    outcome.problem = CheckLaunches(hostile, SharedRuntime(), bytes);
    return outcome;
  }
  const absl::StatusOr<Plan> odd = MakePlan(model, OddOptions(bytes, model.nodes.size()));
  outcome.problem = odd.ok() ? CheckPlan(hostile, *odd) : CheckRefusal(odd.status(), {}, true);
  return outcome;
}

}  // namespace penstock::fuzz
