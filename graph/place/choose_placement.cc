#include "graph/place/choose_placement.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "graph/passes/passes.h"
#include "graph/place/assign.h"
#include "graph/place/figures.h"
#include "penstock/status_macros.h"

namespace penstock::graph {
namespace {

using PlacementTable = Table<DeclId, DeviceId>;
using AssignTasks = absl::StatusOr<Assignment> (*)(const PlaceGraph& graph);

bool HasNoPlace(const NodeDecl& node) { return node.device < 0 && node.kind < NodeKind::kHost; }

bool IsLackOfMemory(const absl::Status& status) { return status.code() == absl::StatusCode::kResourceExhausted; }

std::string TextOf(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

// The devices of nodes that are free, by the assignment of their tasks; none for the default one and for other nodes.
PlacementTable PlacementOf(const Model& model, const PlanOptions& options, const PlaceTasks& tasks,
                           const Assignment& assigned) {
  PlacementTable placed(model.nodes.size());
  for (const DeclId n : model.nodes.ids()) {
    if (!HasNoPlace(model.nodes[n])) continue;
    const int32_t place = assigned.device[static_cast<size_t>(tasks.task[n])];
    const DeviceId device = tasks.devices[static_cast<size_t>(place)];
    if (device != options.default_device) placed[n] = device;
  }
  return placed;
}

struct Way {
  const char* name;
  AssignTasks assign;  // null: all on the default device
};
constexpr Way kWays[] = {
    {"one device", nullptr},
    {"affinity", [](const PlaceGraph& graph) { return AssignByAffinity(graph, 0); }},
    {"HEFT", &AssignByHeft},
};

class Chooser {
 public:
  Chooser(const Model& model, const PlanOptions& options, const PlaceOptions& how, const BeforePass& before_pass)
      : model_(model),
        options_(options),
        how_(how),
        before_pass_(before_pass),
        figures_(AssumeFigures(how.figures, options.devices)) {}

  absl::StatusOr<PlacedPlan> Choose() {
    for (const Way& way : kWays) PENSTOCK_RETURN_IF_ERROR(Try(way));
    const size_t best = Best();
    std::optional<Plan>& plan = candidates_[best].plan;
    if (!plan) return candidates_[best].status;
    return Take(best, *std::move(plan));
  }

 private:
  struct Tried {
    PlacementTable placement{};
    std::optional<Plan> plan{};
    absl::Status status{};  // why there is no plan, or no score
    bool is_scored = false;
    PlacementReport::Candidate report{};
  };

  // Only mistakes of the graph, and what ends the planning, are errors.
  absl::Status Try(const Way& way) {
    Tried& tried = candidates_.emplace_back();
    tried.report.name = way.name;
    PENSTOCK_RETURN_IF_ERROR(Tell(0));
    PENSTOCK_RETURN_IF_ERROR(PlanWay(way, tried));
    PENSTOCK_RETURN_IF_ERROR(Tell(1 + static_cast<int>(Passes().size())));
    if (tried.plan) Score(*tried.plan, tried);
    else if (tried.report.why.empty()) tried.report.why = "left out: " + OneLine(TextOf(tried.status));
    return absl::OkStatus();
  }

  absl::Status PlanWay(const Way& way, Tried& tried) {
    if (way.assign == nullptr) {
      PENSTOCK_RETURN_IF_ERROR(MakeOne(tried));
      tasks_ = MakePlaceTasks(model_, options_, figures_);
      tasks_.graph.name_of = [this](int32_t task) { return NameOfTask(task); };
      return absl::OkStatus();
    }
    PENSTOCK_RETURN_IF_ERROR(AssignAndMake(way, tasks_, tried));
    if (tried.plan || !tried.report.why.empty()) return absl::OkStatus();
    PlaceTasks limited = tasks_;
    LimitMemory(options_, limited);
    return AssignAndMake(way, limited, tried);
  }

  absl::Status AssignAndMake(const Way& way, const PlaceTasks& tasks, Tried& tried) {
    const absl::StatusOr<Assignment> assigned = way.assign(tasks.graph);
    if (!assigned.ok()) {
      tried.status = assigned.status();
      return absl::OkStatus();
    }
    tried.placement = PlacementOf(model_, options_, tasks, *assigned);
    for (const Tried& earlier : candidates_) {
      if (&earlier == &tried || !IsSame(earlier.placement, tried.placement)) continue;
      tried.status = earlier.status;
      if (earlier.plan)
        tried.report.why = absl::StrCat("left out: it places all nodes as ", earlier.report.name, " does");
      return absl::OkStatus();
    }
    return MakeOne(tried);
  }

  // An empty placement is one without any device.
  static bool IsSame(const PlacementTable& a, const PlacementTable& b) {
    const auto is_default = [](DeviceId device) { return device < 0; };
    if (a.empty() || b.empty())
      return std::all_of(a.begin(), a.end(), is_default) && std::all_of(b.begin(), b.end(), is_default);
    return a == b;
  }

  std::string NameOfTask(int32_t task) const {
    for (const DeclId n : model_.nodes.ids()) {
      if (tasks_.task[n] == task) return "node '" + std::string(model_.nodes[n].name.view()) + "'";
    }
    return "contents from before the run";
  }

  // The steps of the choice for whoever is told: of each candidate its assignment, the passes of its plan, and its
  // score. A candidate that is planned twice stays where it is.
  absl::Status Tell(int step) {
    if (!before_pass_) return absl::OkStatus();
    const int steps = static_cast<int>(Passes().size()) + 2;
    told_ = std::max(told_, (static_cast<int>(candidates_.size()) - 1) * steps + step);
    return before_pass_(told_, static_cast<int>(std::size(kWays)) * steps);
  }
  BeforePass TellOfPasses() {
    if (!before_pass_) return {};
    return [this](int done, int) { return Tell(1 + done); };
  }

  absl::Status MakeOne(Tried& tried) {
    PlanOptions options = options_;
    options.placement = tried.placement;
    absl::StatusOr<Plan> plan = MakePlan(model_, options, TellOfPasses());
    tried.status = plan.status();
    if (!plan.ok()) return IsLackOfMemory(tried.status) ? absl::OkStatus() : tried.status;
    tried.plan = *std::move(plan);
    return absl::OkStatus();
  }

  void Score(const Plan& plan, Tried& tried) {
    absl::StatusOr<PlaceScore> score =
        ScoreOf(plan, tasks_, figures_, {.workers = how_.workers, .as_graph = how_.as_graph});
    if (!score.ok()) {
      tried.report.why = "left out: " + OneLine(TextOf(score.status()));
      return;
    }
    tried.is_scored = true;
    tried.report.makespan_us = score->makespan_us;
    tried.report.work_us = std::move(score->work_us);
    tried.report.between_bytes = score->between_bytes;
    tried.report.host_bytes = score->host_bytes;
    const double one = candidates_[0].report.makespan_us;
    if (one > 0) tried.report.gain = 1 - score->makespan_us / one;
  }

  // The first of the fastest if it gains enough or the default device has no plan.
  size_t Best() const {
    const Tried& one = candidates_[0];
    if (one.plan && !one.is_scored) return 0;
    size_t best = 0;
    for (size_t c = 1; c < candidates_.size(); ++c) {
      const bool none_yet = !candidates_[best].is_scored;
      const double least = candidates_[best].report.makespan_us;
      if (candidates_[c].is_scored && (none_yet || candidates_[c].report.makespan_us < least)) best = c;
    }
    if (!one.plan) return candidates_[best].plan ? best : FirstWithPlan();
    return candidates_[best].report.makespan_us <= (1 - kLeastGain) * one.report.makespan_us ? best : 0;
  }

  // Returns the first other candidate with a plan, where all were too large to be compared.
  size_t FirstWithPlan() const {
    for (size_t c = 1; c < candidates_.size(); ++c) {
      if (candidates_[c].plan) return c;
    }
    return 0;
  }

  PlacedPlan Take(size_t best, Plan plan) {
    PlacedPlan made;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      PlacementReport::Candidate& report = candidates_[c].report;
      report.taken = c == best;
      if (c == best) report.why = WhyTaken(c);
      else if (report.why.empty()) report.why = WhyNot(c, best);
      made.candidates.push_back(std::move(report));
    }
    made.plan = std::move(plan);
    made.placement = std::move(candidates_[best].placement);
    return made;
  }

  std::string WhyTaken(size_t c) const {
    if (c > 0) return candidates_[0].plan ? "taken: it is the fastest" : "taken: one device has not enough memory";
    return candidates_[0].is_scored ? absl::StrFormat("taken: no other gains %.0f %%", 100 * kLeastGain)
                                    : "taken: it could not be compared";
  }
  std::string WhyNot(size_t c, size_t best) const {
    const double of_best = candidates_[best].report.makespan_us, own = candidates_[c].report.makespan_us;
    if (best > 0 || own >= of_best) return "left out: it is not the fastest";
    return absl::StrFormat("left out: it gains less than %.0f %%", 100 * kLeastGain);
  }

  const Model& model_;
  const PlanOptions& options_;
  const PlaceOptions& how_;
  const BeforePass& before_pass_;
  const MachineFigures figures_;
  PlaceTasks tasks_;
  std::vector<Tried> candidates_;
  int told_ = 0;  // how far the choice has come
};

bool IsAnythingToPlace(const Model& model, const PlanOptions& options) {
  if (options.default_device < 0 || options.default_device >= options.devices.count()) return false;
  return PlaceableDevices(options).size() > 1 && std::any_of(model.nodes.begin(), model.nodes.end(), HasNoPlace);
}

}  // namespace

PlacementReport ReportPlacement(const Plan& plan, const Model& model, const std::vector<std::string>& devices,
                                const std::vector<PlacementReport::Candidate>& candidates) {
  PlacementReport report{
      .graph = std::string(model.name.view()), .devices = devices, .candidates = candidates, .nodes = {}};
  for (const NodeDecl& node : model.nodes) report.nodes.push_back({.name = std::string(node.name.view())});
  for (const PlanNode& node : plan.nodes) {
    if (node.decl < 0 || model.nodes[node.decl].kind == NodeKind::kHost) continue;
    report.nodes[static_cast<size_t>(node.decl)].device = node.device;
  }
  Table<DeclId, bool> planned(model.nodes.size());
  for (const PlanNode& node : plan.nodes) {
    if (node.decl >= 0) planned[node.decl] = true;
  }
  for (const DeclId n : model.nodes.ids()) {
    report.nodes[static_cast<size_t>(n)].left_out = model.nodes[n].kind == NodeKind::kCopy && !planned[n];
  }
  return report;
}

absl::StatusOr<PlacedPlan> ChoosePlacement(const Model& model, const PlanOptions& options, const PlaceOptions& how,
                                           const BeforePass& before_pass) {
  if (how.figures != nullptr) {
    PENSTOCK_RETURN_IF_ERROR(CheckFigures(*how.figures, options.devices));
  }
  if (IsAnythingToPlace(model, options)) return Chooser(model, options, how, before_pass).Choose();
  PlacedPlan made;
  PENSTOCK_ASSIGN_OR_RETURN(made.plan, MakePlan(model, options, before_pass));
  return made;
}

}  // namespace penstock::graph
