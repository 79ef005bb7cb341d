// The parts of DeclarationMatcher that need no template.
#include "penstock/detail/declaration_matcher.h"

namespace penstock::detail {
namespace {

int64_t WidthOf(const NodeDecl& node) {
  if (node.kind == NodeKind::kFill) return static_cast<int64_t>(node.pattern.size());
  const bool line = node.extent.rank == 1 && node.extent.dims[0].is_constant();
  return line ? node.extent.dims[0].value : -1;
}

bool IsSame(const Box& a, const Box& b) {
  return a.whole == b.whole && (a.whole || (a.offset == b.offset && a.size == b.size));
}

}  // namespace

DeclarationMatcher::DeclarationMatcher(const Model& model) : model_(model), said_(model.nodes.size()) {
  for (const NodeDecl& node : model.nodes) {
    all_ += static_cast<const NodeOptions&>(node) != NodeOptions() ? 1 : 0;
    all_ += node.code.call_fallback != nullptr ? 1 : 0;
    all_ += static_cast<int64_t>(node.after.size() + node.in_place.size());
    nodes_.push_back({.name = node.name.c_str(),
                      .code = CodeOf(node.code),
                      .kernel = node.code.cuda_self,
                      .width = WidthOf(node),
                      .name_size = static_cast<uint32_t>(node.name.view().size()),
                      .first_access = static_cast<uint32_t>(accesses_.size()),
                      .first_arg = static_cast<uint32_t>(args_.size()),
                      .accesses = static_cast<uint16_t>(node.accesses.size()),
                      .args = static_cast<uint16_t>(node.args.size()),
                      .kind = node.kind});
    for (const AccessDecl& a : node.accesses)
      accesses_.push_back({a.buffer, a.mode, a.unordered, a.uncopied, a.box.whole()});
    for (const ArgDecl& a : node.args) args_.push_back({a.offset, a.size, a.index, a.form});
  }
  changes_.reserve(2 * model.nodes.size());
}

bool DeclarationMatcher::MatchedNode::IsSameBox(const Box& box) const {
  return IsSame(decl().accesses[access_ - 1 - was_.first_access].box, box);
}

void DeclarationMatcher::Begin(std::span<const Place> places) {
  places_ = places;
  changes_.clear();
  param_ = buffer_ = node_ = 0;
  missing_ = all_;
  ++step_;
  same_ = true;
  deterministic_ = false;
}

bool DeclarationMatcher::Matches() const {
  return same_ && missing_ == 0 && param_ == model_.params.size() && buffer_ == model_.buffers.size() &&
         node_ == model_.nodes.size() && deterministic_ == model_.deterministic;
}

int32_t DeclarationMatcher::Param(const ParamDecl& decl) {
  if (!Match(param_ < model_.params.size())) return -1;
  const ParamDecl& was = model_.params[param_];
  Match(was.name == decl.name && was.type == decl.type && was.has_max == decl.has_max && was.max == decl.max);
  return same_ ? static_cast<int32_t>(param_++) : -1;
}

int32_t DeclarationMatcher::Buffer(const BufferDecl& decl) {
  if (!Match(buffer_ < model_.buffers.size())) return -1;
  const BufferDecl& was = model_.buffers[buffer_];
  const bool place = was.role == decl.role && was.where == decl.where && was.pitch == decl.pitch &&
                     was.device == decl.device && was.keys == decl.keys;
  const bool count = was.count.buffer == decl.count.buffer && IsSame(was.count.box, decl.count.box);
  const bool alias = was.is_alias == decl.is_alias && was.alias_of == decl.alias_of &&
                     was.alias_graph == decl.alias_graph && IsSame(was.box, decl.box);
  Match(was.name == decl.name && was.type == decl.type && place && was.extent == decl.extent && alias && count);
  return same_ ? static_cast<int32_t>(buffer_++) : -1;
}

int32_t DeclarationMatcher::State(const std::shared_ptr<const StateRecord>& state) {
  if (!Match(state != nullptr)) return -1;
  for (int32_t b = 0; b < static_cast<int32_t>(buffer_); ++b) {
    if (model_.buffers[b].state == state) return b;
  }
  const auto next = static_cast<int32_t>(buffer_);
  return Match(IsState(next, state.get())) ? next : -1;
}

}  // namespace penstock::detail
