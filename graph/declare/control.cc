// The parts of a construct's declaration that need no template.
#include <string>

#include "graph/common/message.h"
#include "penstock/detail/declare_control.h"

namespace penstock::detail {
namespace {

constexpr int kMostLevels = 64;

int LevelOf(const Model& model, BodyId body) { return body < 0 ? 0 : model.bodies[body].depth; }

template <class Text>
void RefuseControl(const DeclarationSink& sink, const Name& name, Text text) {
  sink.Visit(
      [&](auto& to) { to.Refuse([&] { return graph::Prefix(sink.model(), "construct", name) + ": " + text(); }); });
}

}  // namespace

void CheckOneElement(const DeclarationSink& sink, const Name& construct, const Extent& extent) {
  bool one = true;
  for (int i = 0; i < extent.rank && i < kMaxRank; ++i) one = one && extent.dims[static_cast<size_t>(i)] == Dim(1);
  if (one) return;
  RefuseControl(sink, construct, [] {
    return "the number of its iterations, or whether they were capped, is one value, and what is named for it is not "
           "one element; name a buffer of one element, or one of a larger buffer, as in "
           "ps::Write(counts, ps::Slice({i}, {1}))";
  });
}

ControlId AddControl(const DeclarationSink& sink, ControlDecl decl, int32_t condition, int32_t word) {
  if (sink.is_compared()) {  // a step that is declared again has no constructs
    RefuseControl(sink, decl.name, [] { return std::string(); });
    return {};
  }
  Model& model = sink.model();
  if (decl.max < 0) {
    RefuseControl(sink, decl.name, [&] {
      return "WhileOptions::max is " + std::to_string(decl.max) + "; give the most iterations, 0 or more";
    });
  }
  if (decl.expected < 0) {
    RefuseControl(sink, decl.name, [&] {
      return "WhileOptions::expected is " + std::to_string(decl.expected) +
             "; give about how many iterations there will be, 0 or more";
    });
  }
  if (decl.kind == ControlKind::kRepeat && decl.trips.is_constant() && decl.trips.value < 0) {
    RefuseControl(sink, decl.name, [&] {
      return "repeats its body " + std::to_string(decl.trips.value) + " times; give a number that is not negative";
    });
  }
  const Dim& trips = decl.trips;
  if (!trips.is_constant() && (trips.graph != model.serial || trips.param < 0 || trips.param >= model.params.count())) {
    RefuseControl(sink, decl.name, [&] {
      return std::string("repeats its body as often as ") +
             (trips.param < 0 ? "no parameter says; its handle was never set; "
                              : "a parameter of another graph says; a handle is good in the graph that made it; ") +
             "declare the parameter in this graph";
    });
    decl.trips = 0;
  }
  decl.in = model.open;
  decl.begin = model.nodes.next();
  decl.condition = condition;
  if (decl.condition >= 0) model.nodes[decl.condition].decides = true;
  decl.word = word;
  model.controls.push_back(std::move(decl));
  return model.controls.next() - 1;
}

OpenBody::OpenBody(const DeclarationSink& sink, ControlId of) : model_(sink.model()), outer_(sink.model().open) {
  if (of < 0) return;
  const int depth = LevelOf(model_, outer_) + 1;
  if (depth > kMostLevels) {
    RefuseControl(sink, model_.controls[of].name, [] {
      return "is the " + std::to_string(kMostLevels + 1) +
             "th of constructs within each other, of which there may be " + std::to_string(kMostLevels) +
             "; its body is not declared; move some of them out";
    });
    return;
  }
  is_open_ = true;
  model_.bodies.push_back({of, depth});
  model_.open = model_.bodies.next() - 1;
  model_.controls[of].bodies.push_back(model_.open);
}

OpenBody::~OpenBody() {
  if (is_open_) model_.open = outer_;  // a model that declarations are compared with is never written
}

}  // namespace penstock::detail
