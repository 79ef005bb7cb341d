// The parts of the declaration of a Map that need no template.
#include "graph/declare/map.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "graph/common/message.h"
#include "graph/formula/cuda_text.h"
#include "penstock/detail/declaration_matcher.h"
#include "penstock/detail/declaration_recorder.h"
#include "penstock/detail/declare_map.h"

namespace penstock::graph {

using detail::FormulaStep;

int32_t AddStep(std::vector<FormulaStep>& steps, const FormulaStep& step) {
  const auto at = std::find(steps.begin(), steps.end(), step);
  const auto index = static_cast<int32_t>(at - steps.begin());
  if (at == steps.end()) steps.push_back(step);
  return index;
}

void SetFormula(NodeDecl& node, std::shared_ptr<const detail::Formula> formula, const Extent& extent,
                std::vector<AccessDecl> accesses, const std::vector<TypeInfo>& types,
                const std::vector<detail::FlatMap::Param>& params) {
  node.extent = extent;
  node.functor_rank = extent.rank;
  node.shape.programmatic = true;  // the kernel awaits its predecessors
  node.accesses = std::move(accesses);
  const auto add = [&](ArgDecl::Form form, uint32_t size, uint32_t align) -> ArgDecl& {
    ArgDecl arg;
    arg.form = form;
    arg.offset = detail::Reserve(node, size, align);
    arg.size = size;
    return node.args.emplace_back(arg);
  };
  add(ArgDecl::Form::kRange, sizeof(detail::Range), alignof(detail::Range));
  ArgDecl& address = add(ArgDecl::Form::kValue, sizeof(void*), alignof(void*));
  address.type = detail::TypeOf<const void*>();
  const void* const at = formula.get();
  std::memcpy(node.arg_block.data() + address.offset, &at, sizeof(void*));
  for (size_t a = 0; a < node.accesses.size(); ++a) {
    ArgDecl& view = add(ArgDecl::Form::kView, sizeof(View<char>), alignof(View<char>));
    view.index = static_cast<int32_t>(a);
    view.type = types[a];
  }
  for (const detail::FlatMap::Param& param : params) {
    ArgDecl& value = add(ArgDecl::Form::kParam, param.type.size, param.type.align);
    value.index = param.index;
    value.graph = param.graph;
    value.type = param.type;
  }
  node.code.range = &detail::RunFormula;
  node.code.source = SourceOf(*formula);
  node.code.cuda_self = node.code.source.get();
  node.code.formula = std::move(formula);
}

namespace {

// Walks an expression, each term once, operands first.
class Flattener {
 public:
  explicit Flattener(detail::FlatMap& map) : map_(map) {}

  // The step of a term; -1: the formula has too many.
  int32_t Add(const detail::Term& term) {
    if (const auto known = steps_.find(&term); known != steps_.end()) return known->second;
    FormulaStep step{.operation = term.operation, .type = term.type};
    step.number = term.number;
    if (term.operation == detail::Operation::kRead) {
      step.a = IndexOf(term.access, term.type);
    } else if (term.operation == detail::Operation::kParam) {
      step.a = IndexOfParam(term);
    } else {
      std::array<int32_t, 3> operands{-1, -1, -1};
      for (size_t i = 0; i < operands.size() && term.of[i] != nullptr; ++i) {
        operands[i] = Add(*term.of[i]);
        if (operands[i] < 0) return -1;
      }
      step.a = operands[0];
      step.b = operands[1];
      step.c = operands[2];
    }
    if (map_.formula.steps.size() >= size_t{detail::kMostOperations}) return -1;
    return steps_[&term] = AddStep(map_.formula.steps, step);
  }

 private:
  // What is written comes first, and may be read too.
  int32_t IndexOf(const detail::ErasedAccess& access, detail::ScalarType type) {
    const auto at = std::find(map_.accesses.begin(), map_.accesses.end(), access);
    const auto index = static_cast<int32_t>(at - map_.accesses.begin());
    if (at != map_.accesses.end()) return index;
    map_.accesses.push_back(access);
    map_.formula.accesses.push_back(type);
    return index;
  }
  int32_t IndexOfParam(const detail::Term& term) {
    const auto same = [&](const auto& param) { return param.index == term.param && param.graph == term.graph; };
    const auto at = std::find_if(map_.params.begin(), map_.params.end(), same);
    const auto index = static_cast<int32_t>(at - map_.params.begin());
    if (at != map_.params.end()) return index;
    map_.params.push_back({term.param, term.graph, term.param_type});
    map_.formula.params.push_back(term.type);
    return index;
  }

  detail::FlatMap& map_;
  std::unordered_map<const detail::Term*, int32_t> steps_;
};

void RefuseFormula(const detail::DeclarationSink& sink, const Name& node, const std::string& what) {
  sink.Visit([&](auto& to) { to.Refuse([&] { return Prefix(sink.model(), "node", node) + ": " + what; }); });
}

}  // namespace
}  // namespace penstock::graph

namespace penstock::detail {

SharedTerm MakeTerm(Term term) {
  for (const SharedTerm& operand : term.of) {
    if (operand != nullptr) term.depth = std::max(term.depth, operand->depth + 1);
  }
  if (term.depth > kMostDepth) {
    term.of = {};
    term.operation = Operation::kNumber;
    term.depth = kMostDepth + 1;
  }
  return std::make_shared<const Term>(std::move(term));
}

FlatMap Flatten(const DeclarationSink& sink, const Name& node, const ErasedAccess& to, const SharedTerm& value) {
  FlatMap map;
  map.extent = FindAccessed(sink.model(), to.graph, to.buffer, to.box, to.state.get()).extent;
  map.accesses.push_back(to);
  map.formula.accesses.push_back(value->type);
  map.formula.rank = map.extent.rank;
  const int32_t step = value->depth > kMostDepth ? -1 : graph::Flattener(map).Add(*value);
  map.formula.written.push_back(std::max(step, 0));
  if (step < 0) {
    map.formula.steps.resize(1);
    graph::RefuseFormula(sink, node,
                         "its expression has more than " + std::to_string(kMostOperations) +
                             " operations, or more than " + std::to_string(kMostDepth) +
                             " one in another; write parts of it to buffers, by Maps of their own");
  }
  for (size_t a = 1; a < map.accesses.size(); ++a) {
    CheckSameShape(sink, node, "a Map", map.accesses[a], to);
    CheckInPlace(sink, node, map.accesses[a], to, true);
  }
  return map;
}

void RecordedNode::Map(const FlatMap& map) {
  std::vector<AccessDecl> accesses;
  std::vector<TypeInfo> types;
  for (size_t a = 0; a < map.accesses.size(); ++a) {
    const ErasedAccess& access = map.accesses[a];
    AccessDecl decl{access.buffer, access.graph, map.formula.ModeOf(a), access.unordered, access.box, access.uncopied};
    if (access.state != nullptr) Resolve(decl, access.state);
    accesses.push_back(std::move(decl));
    types.push_back(access.type);
  }
  graph::SetFormula(decl_, std::make_shared<const Formula>(map.formula), map.extent, std::move(accesses), types,
                    map.params);
}

void DeclarationMatcher::MatchedNode::Map(const FlatMap& map) {
  const size_t args = 2 + map.accesses.size() + map.params.size();
  const std::shared_ptr<const Formula>& was = decl().code.formula;
  if (!Match(was != nullptr && was->Equals(map.formula) && was_.args == args && IsSameExtent(map.extent))) return;
  for (size_t a = 0; a < map.accesses.size(); ++a) {
    const ErasedAccess& access = map.accesses[a];
    MatchAccess(access.buffer, access.graph, access, map.formula.ModeOf(a));
  }
  const ArgRecord* param = matcher_.args_.data() + was_.first_arg + 2 + map.accesses.size();
  for (const FlatMap::Param& said : map.params) {
    Match(param->index == said.index && matcher_.model_.serial == said.graph);
    ++param;
  }
}

}  // namespace penstock::detail
