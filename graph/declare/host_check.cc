#include "graph/declare/host_check.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "graph/declare/host_check_nodes.h"
#include "penstock/detail/declaration_recorder.h"

namespace penstock::graph {
namespace {

bool HasHostCode(const NodeDecl& node) {
  switch (node.kind) {
    case NodeKind::kParallelFor: return node.code.range != nullptr;
    case NodeKind::kKernel:
    case NodeKind::kLaunch: return node.code.call_fallback != nullptr;
    default: return false;
  }
}

class Rewriter {
 public:
  Rewriter(const Model& model, double tolerance, std::vector<std::string>& unchecked)
      : in_(model), out_(model), tolerance_(tolerance), unchecked_(unchecked), unordered_(model.buffers.size()) {
    out_.nodes.clear();
    boxes_.Reserve(model.nodes.size());
    for (const NodeDecl& node : model.nodes) boxes_.Add(model, node);
    boxes_.FindBoxes(model);
    for (const NodeDecl& node : model.nodes) {
      for (const AccessDecl& access : node.accesses) {
        if (access.unordered) unordered_[BaseOf(model, access.buffer)] = true;
      }
    }
  }

  Model Run() {
    std::vector<int32_t> moved;  // old node -> new one
    for (const DeclId n : in_.nodes.ids()) {
      const NodeDecl& node = in_.nodes[n];
      const bool checked = HasHostCode(node) && Checkable(n);
      std::vector<Aside> aside;
      if (checked) aside = CopyAside(node);
      moved.push_back(static_cast<int32_t>(out_.nodes.size()));
      out_.nodes.push_back(node);
      if (!checked) continue;
      for (size_t i = 0; i < aside.size(); ++i) {
        if (aside[i].poisoned) out_.nodes.back().accesses[i].mode = AccessMode::kReadWrite;
      }
      AddCheck(node, aside);
    }
    for (NodeDecl& node : out_.nodes) {
      for (DeclId& other : node.after) other = moved[other];
    }
    for (const Skipped& skipped : skipped_) unchecked_.push_back(TextOf(skipped));
    return std::move(out_);
  }

 private:
  const BufferDecl& Buffer(const AccessDecl& access) const { return in_.buffers[access.buffer]; }

  // Why nodes are not checked: the first of them, and how many more there are.
  enum class Reason : uint8_t { kAlias, kUnordered, kTwice, kTells, kWritesNothing };
  struct Skipped {
    Reason reason;
    DeclId node;
    BufferId buffer;
    int64_t others = 0;
  };

  // Whether the node can be checked; otherwise adds to `skipped_`.
  bool Checkable(DeclId n) {
    const std::span<const BoxRef> accesses = boxes_[n];
    const auto working = static_cast<size_t>(in_.nodes[n].tiles.working);
    bool writes = false, prepares = false;
    for (size_t i = 0; i < accesses.size(); ++i) {
      const BufferId buffer = accesses[i].buffer;
      if (in_.nodes[n].decides && writes && accesses[i].mode == AccessMode::kWrite) {
        return Skip(Reason::kTells, n, buffer);  // the first is the condition's word
      }
      if (in_.buffers[buffer].is_alias) return Skip(Reason::kAlias, n, buffer);
      if (unordered_[buffer]) return Skip(Reason::kUnordered, n, buffer);
      if (MeetsEarlier(accesses, i)) return Skip(Reason::kTwice, n, buffer);
      if (accesses[i].mode == AccessMode::kRead || accesses[i].mode == AccessMode::kScratch) continue;
      (i == working ? prepares : writes) = true;
    }
    if (prepares && !writes) return false;  // a later node is checked, whose host code needs no preparation here
    return writes || Skip(Reason::kWritesNothing, n, {});
  }

  // Whether access `i` may have an element in common with an earlier one, and either writes it: the host code would
  // read what the node has written.
  bool MeetsEarlier(std::span<const BoxRef> accesses, size_t i) const {
    const BoxRef& own = accesses[i];
    return std::any_of(accesses.begin(), accesses.begin() + static_cast<std::ptrdiff_t>(i), [&](const BoxRef& other) {
      if (other.base != own.base || other.box < 0 || own.box < 0) return false;
      if (other.mode == AccessMode::kRead && own.mode == AccessMode::kRead) return false;
      const BoxTree* tree = boxes_.tree(own.base);
      return tree == nullptr || Overlap(tree->box(other.box), tree->box(own.box));
    });
  }

  bool Skip(Reason reason, DeclId node, BufferId buffer) {
    for (Skipped& skipped : skipped_) {
      if (skipped.reason != reason) continue;
      ++skipped.others;
      return false;
    }
    skipped_.push_back({reason, node, buffer});
    return false;
  }

  std::string TextOf(const Skipped& skipped) const {
    const std::string buffer = skipped.buffer < 0 ? "" : "'" + OneLine(in_.buffers[skipped.buffer].name.view()) + "'";
    std::string why;
    switch (skipped.reason) {
      case Reason::kAlias: why = buffer + " is an alias"; break;
      case Reason::kUnordered: why = "an access to " + buffer + " is Unordered"; break;
      case Reason::kTwice: why = "it accesses elements of " + buffer + " twice and writes them"; break;
      case Reason::kTells: why = "what it tells of its loop, in " + buffer + ", only the node knows"; break;
      case Reason::kWritesNothing: why = "it writes no buffer"; break;
    }
    if (skipped.others == 1) why += "; nor is 1 other node, for such a reason";
    if (skipped.others > 1) why += "; nor are " + std::to_string(skipped.others) + " other nodes, for such a reason";
    return Prefix(in_, "node", in_.nodes[skipped.node].name) + ": not checked against its host code: " + why;
  }

  // "keep add x", with the number of the access if the node accesses the buffer several times.
  Name NameFor(const char* what, const NodeDecl& node, size_t access) const {
    const BufferId buffer = node.accesses[access].buffer;
    const auto same = [&](const AccessDecl& a) { return a.buffer == buffer; };
    std::string tail = " " + std::string(in_.buffers[buffer].name.view());
    if (std::count_if(node.accesses.begin(), node.accesses.end(), same) > 1) tail += " " + std::to_string(access);
    return NameFor(what, node, tail);
  }
  static Name NameFor(const char* what, const NodeDecl& node, const std::string& tail) {
    const SourceLine& source = node.name.source();
    return Name(std::string(what) + " " + std::string(node.name.view()) + tail, source.file, source.line);
  }

  // Pinned buffers of the shape of the one that an access writes; none (-1) for one that only reads. Of an access to a
  // part, only that part is used.
  struct Aside {
    int32_t mine = -1;  // for the host code to write
    int32_t before = -1;  // what is there before a node that writes some elements
    bool poisoned = false;  // that node has no contents of its own to start with, so it gets some
  };

  // Adds the buffers, and the nodes that fill them if the node starts with contents.
  std::vector<Aside> CopyAside(const NodeDecl& node) {
    std::vector<Aside> aside(node.accesses.size());
    for (size_t i = 0; i < aside.size(); ++i) {
      const AccessMode mode = node.accesses[i].mode;
      if (mode == AccessMode::kRead) continue;
      aside[i].mine = AddBuffer("host fallback of", node, i);
      if (mode == AccessMode::kReadWrite) AddKeep(node, i, AccessMode::kRead, aside[i].mine);
      if (mode != AccessMode::kWriteSome) continue;
      const BufferDecl& of = Buffer(node.accesses[i]);
      aside[i].before = AddBuffer("before", node, i);
      aside[i].poisoned = of.role == BufferRole::kInternal || of.count.buffer >= 0;
      // Nodes may not have written an Output before, so it cannot be read.
      AddKeep(node, i,
              aside[i].poisoned                ? AccessMode::kWrite
              : of.role == BufferRole::kOutput ? AccessMode::kWriteSome
                                               : AccessMode::kRead,
              aside[i].before);
    }
    return aside;
  }

  int32_t AddBuffer(const char* what, const NodeDecl& node, size_t access) {
    const BufferDecl& of = Buffer(node.accesses[access]);
    out_.buffers.push_back(
        {NameFor(what, node, access), of.type, BufferRole::kInternal, Where::kPinned, of.extent, of.pitch});
    return static_cast<int32_t>(out_.buffers.size()) - 1;
  }

  // Adds a node that copies what the access finds to another buffer. If it writes that, it first fills it with poison.
  void AddKeep(const NodeDecl& node, size_t index, AccessMode mode, int32_t to) {
    const AccessDecl& access = node.accesses[index];
    const BufferDecl& of = Buffer(access);
    NodeDecl keep(NameFor("keep", node, index));
    keep.kind = NodeKind::kHost;
    AddView(keep, access, mode, of.type);
    AddView(keep, On(to, access), AccessMode::kWrite, of.type);
    keep.code.callable = std::make_shared<HostCheckKeep>(HostCheckKeep{of.type.size, mode == AccessMode::kWrite});
    keep.code.call = &RunHostCheckKeep;
    out_.nodes.push_back(std::move(keep));
  }

  // The same elements of another buffer.
  static AccessDecl On(int32_t buffer, AccessDecl access) {
    access.buffer = buffer;
    return access;
  }

  static void AddView(NodeDecl& node, AccessDecl access, AccessMode mode, const TypeInfo& type) {
    ArgDecl view;
    view.form = ArgDecl::Form::kView;
    view.offset = detail::Reserve(node, sizeof(View<char>), alignof(View<char>));
    view.size = sizeof(View<char>);
    view.index = static_cast<int32_t>(node.accesses.size());
    view.type = type;
    node.args.push_back(view);
    access.mode = mode;
    node.accesses.push_back(std::move(access));
  }

  // Adds the node's own arguments, on the copies, then a view of each buffer that it has written.
  void AddCheck(const NodeDecl& node, const std::vector<Aside>& aside) {
    NodeDecl check(NameFor("check", node, ""));
    check.kind = NodeKind::kHost;
    check.extent = node.extent;
    check.shape = node.shape;
    check.is_task = node.is_task;
    check.args = node.args;
    check.arg_block = node.arg_block;
    auto callable = std::make_shared<HostCheck>();
    callable->code = node.code;
    callable->rank = node.is_task ? detail::kTaskRank : node.extent.rank;
    callable->level = node.level;
    callable->by_rows = node.by_rows;
    callable->tolerance = tolerance_;
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      check.accesses.push_back(aside[i].mine < 0 ? node.accesses[i] : On(aside[i].mine, node.accesses[i]));
      if (node.accesses[i].mode == AccessMode::kWriteSome) check.accesses[i].mode = AccessMode::kWrite;
    }
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      const AccessDecl& access = node.accesses[i];
      if (aside[i].mine < 0 || access.mode == AccessMode::kScratch || static_cast<int>(i) == node.tiles.working)
        continue;
      const BufferDecl& of = Buffer(access);
      HostCheck::Output& output = callable->outputs.emplace_back();
      output = {std::string(of.name.view()), of.type, ArgOf(node, i), check.args.size(), 0, !Reads(access.mode)};
      AddView(check, access, AccessMode::kRead, of.type);
      if (aside[i].before < 0) continue;
      output.before = check.args.size();
      AddView(check, On(aside[i].before, access), AccessMode::kRead, of.type);
    }
    check.code.callable = std::move(callable);
    check.code.call = &RunHostCheck;
    out_.nodes.push_back(std::move(check));
  }

  static size_t ArgOf(const NodeDecl& node, size_t access) {
    for (size_t a = 0; a < node.args.size(); ++a) {
      const bool points = node.args[a].form == ArgDecl::Form::kPointer || node.args[a].form == ArgDecl::Form::kView;
      if (points && node.args[a].index == static_cast<int32_t>(access)) return a;
    }
    return 0;  // not a node that Graph declared
  }

  const Model& in_;
  Model out_;
  const double tolerance_;
  std::vector<std::string>& unchecked_;
  BoxTable boxes_;  // of in_
  std::vector<Skipped> skipped_;  // one for each reason
  // Buffers with Unordered accesses: nodes After a node do not come after its check.
  std::vector<bool> unordered_;
};

}  // namespace

Model WithHostChecks(const Model& model, double tolerance, std::vector<std::string>& unchecked) {
  return Rewriter(model, tolerance, unchecked).Run();
}

}  // namespace penstock::graph
