#include "tests/fuzz/check_bytes.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "graph/plan/plan.h"
#include "tests/fuzz/hostile_graph.h"
#include "tests/fuzz/hostile_launch.h"
#include "tests/fuzz/whole_graph.h"
#include "tests/graph/oracle/atoms.h"
#include "tests/graph/oracle/model_text.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::fuzz {
namespace {

using graph::Plan;
using graph::PlanOptions;

Runtime* MakeRuntime(const char* devices, int workers) {
  RuntimeOptions options;
  options.devices = devices;
  options.workers = workers;
  options.host_device_threads = 1;
  options.host_device_memory = kDeviceBytes;
  absl::StatusOr<Runtime> made = Runtime::Create(options);
  if (!made.ok()) std::abort();
  return new Runtime(*std::move(made));
}
// Two host devices, kept until the process ends: what every input runs on.
Runtime& SharedRuntime() {
  static auto* const runtime = MakeRuntime("host:2", 2);
  return *runtime;
}
// Whose States are wrong.
Runtime& OtherRuntime() {
  static auto* const runtime = MakeRuntime("host:1", 1);
  return *runtime;
}

// What the planner knows the shared runtime by.
const void* RuntimeIdentity() {
  static auto* const state = new absl::StatusOr<State<int>>(SharedRuntime().MakeState<int>("any", 1));
  return (*state)->record()->runtime;
}

PlanOptions TwoHosts() {
  PlanOptions options;
  options.runtime = RuntimeIdentity();
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
  if (options.devices.size() > 1 && bytes.Chance(192)) options.runtime = RuntimeIdentity();  // its States live on two
  if (nodes == 0 || !bytes.Chance(128)) return options;
  for (size_t i = 0; i < nodes; ++i) options.costs.push_back(kCosts[bytes.Below(6)]);
  if (bytes.Chance(16)) options.costs.back() = std::numeric_limits<double>::quiet_NaN();
  if (bytes.Chance(16)) options.costs[0] = std::numeric_limits<double>::infinity();
  return options;
}

// What cannot be cut cannot be followed; nor what has no run in which all slices are inside.
std::string CheckPlan(const HostileGraph& hostile, const PlanOptions& options, const Plan& plan) {
  constexpr uint64_t kSeed = 1;
  const Model& model = hostile.graph.model();
  std::string problem = CheckShape(model, options, plan);
  if (problem.empty()) problem = CheckPlaces(model, options, plan);
  if (problem.empty()) problem = graph::CheckFinish(plan);
  if (problem.empty() && CanBeCut(hostile)) {
    problem = CheckOrder(model, plan);
    const std::vector<int64_t> values = graph::ParamValues(model, kSeed);
    const bool runs = hostile.small && hostile.WrongInRun(values).empty() && ReadsOnlyData(model, values);
    if (problem.empty() && runs) problem = graph::Simulate(model, plan, kSeed);
  }
  if (!problem.empty()) return problem + "\n" + graph::ModelText(model) + PrintText(plan, model);
  return PrintText(plan, model).empty() || PrintDot(plan, model).empty() ? "a plan prints as nothing" : "";
}

}  // namespace

Outcome CheckBytes(std::span<const uint8_t> input) {
  ByteSource bytes(input);
  const HostileGraph hostile(bytes, SharedRuntime(), OtherRuntime());
  const Model& model = hostile.graph.model();
  Outcome outcome;
  outcome.problem = hostile.problem;
  if (!outcome.problem.empty()) return outcome;

  const absl::StatusOr<Plan> plan = MakePlan(model, TwoHosts());
  outcome.accepted = plan.ok();
  outcome.problem = CheckRefusal(plan.status(), hostile.known, false);
  if (outcome.problem.empty() && CanBeCut(hostile)) {
    const Verdict verdict = JudgeWhole(hostile);
    outcome.problem = CheckRefusal(plan.status(), verdict.wrong, false);
    const bool right = verdict.sure && verdict.wrong.empty() && hostile.small;  // others may need too much memory
    if (right && !plan.ok()) outcome.problem = "refused: " + plan.status().ToString();
  }
  if (plan.ok() && outcome.problem.empty()) outcome.problem = CheckPlan(hostile, TwoHosts(), *plan);
  if (!outcome.problem.empty()) return outcome;

  if (plan.ok() && hostile.small) {
    outcome.ran = true;
    outcome.problem = CheckLaunches(hostile, SharedRuntime(), bytes);
    return outcome;
  }
  const PlanOptions options = OddOptions(bytes, model.nodes.size());
  const absl::StatusOr<Plan> odd = MakePlan(model, options);
  outcome.problem = odd.ok() ? CheckPlan(hostile, options, *odd) : CheckRefusal(odd.status(), {}, true);
  return outcome;
}

}  // namespace penstock::fuzz
