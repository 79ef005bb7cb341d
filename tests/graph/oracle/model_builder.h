// Builds a Model record by record, with chosen source lines, so that tests of the planner see exactly what they declare
// and can declare what Graph would refuse to compile.
//
// Every record gets the next line of "a.cc": the first declaration stands in a.cc:1.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

struct In {
  int32_t buffer;
  Box box{};
};
struct Out {
  int32_t buffer;
  Box box{};
};
struct Change {
  int32_t buffer;
  Box box{};
};
struct Some {  // WriteSome
  int32_t buffer;
  Box box{};
};
struct Temporary {  // Scratch
  int32_t buffer;
  Box box{};
};
template <class A>
struct Loose {  // an access of which no edges follow
  A access;
};
template <class A>
Loose(A) -> Loose<A>;

inline constexpr char kRuntime = 0;  // its address stands for the runtime that makes States and compiles

class ModelBuilder {
 public:
  static constexpr uint32_t kSerial = 7;

  explicit ModelBuilder(const char* name = "g") : model(Name(name, "a.cc", 0)) { model.serial = kSerial; }

  int32_t Param(std::string name, int64_t max = -1) {
    ParamDecl decl{NextName(std::move(name)), TypeOf(4), true, true, max >= 0, max};
    model.params.push_back(std::move(decl));
    return static_cast<int32_t>(model.params.size()) - 1;
  }
  Dim ParamDim(int32_t param) const { return Dim(ParamHandle<int32_t>(kSerial, param)); }

  int32_t Buffer(std::string name, Extent extent, BufferRole role, Where where, uint32_t element_bytes = 4) {
    model.buffers.push_back({NextName(std::move(name)), TypeOf(element_bytes), role, where, extent, 0});
    return static_cast<int32_t>(model.buffers.size()) - 1;
  }
  int32_t Input(std::string name, Extent extent, Where where = kHost) {
    return Buffer(std::move(name), extent, BufferRole::kInput, where);
  }
  int32_t Output(std::string name, Extent extent, Where where = kHost) {
    return Buffer(std::move(name), extent, BufferRole::kOutput, where);
  }
  int32_t InOut(std::string name, Extent extent, Where where = kHost) {
    return Buffer(std::move(name), extent, BufferRole::kInOut, where);
  }
  int32_t Scratch(std::string name, Extent extent, Where where = kDevice) {
    return Buffer(std::move(name), extent, BufferRole::kInternal, where);
  }
  // The same buffer, with rows `pitch` elements apart.
  int32_t Pitched(int32_t buffer, int64_t pitch) {
    model.buffers[buffer].pitch = pitch;
    return buffer;
  }
  // Part of a buffer, or all of it as elements of `element_bytes`.
  int32_t Alias(std::string name, int32_t of, const Box& box) {
    const Extent extent = box.whole ? model.buffers[of].extent : box.size;
    return Alias(std::move(name), of, model.buffers[of].type.size, extent, box);
  }
  int32_t Alias(std::string name, int32_t of, uint32_t element_bytes, Extent extent, const Box& box = {}) {
    const int32_t alias = Buffer(std::move(name), extent, BufferRole::kInternal, kDevice, element_bytes);
    BufferDecl& decl = model.buffers[alias];
    decl.is_alias = true;
    decl.alias_of = of;
    decl.alias_graph = kSerial;
    decl.box = box;
    return alias;
  }
  // Made by the runtime that Devices() plans for.
  int32_t State(std::string name, Extent extent, int32_t device = 0) {
    const int32_t b = Buffer(std::move(name), extent, BufferRole::kState, kDevice);
    BufferDecl& decl = model.buffers[b];
    decl.state = std::make_shared<const StateRecord>(StateRecord{decl.name, decl.type, extent, device, &kRuntime});
    return b;
  }

  // Nodes whose kind asks for nothing but accesses are sound as they are.
  template <class... A>
  int32_t For(std::string name, A... accesses) {
    NodeDecl& node = Node(std::move(name), NodeKind::kParallelFor, accesses...);
    node.extent = Extent(1);
    node.functor_rank = 1;
    node.code.cuda_kernel = [](const void*, int*) -> const void* { return nullptr; };
    return LastNode();
  }
  template <class... A>
  int32_t Host(std::string name, A... accesses) {
    Node(std::move(name), NodeKind::kHost, accesses...);
    return LastNode();
  }
  template <class... A>
  int32_t Kernel(std::string name, A... accesses) {
    NodeDecl& node = Node(std::move(name), NodeKind::kKernel, accesses...);
    node.code.cuda_kernel = [](const void*, int*) -> const void* { return nullptr; };
    node.code.call_fallback = [](void*, void* const*) { return absl::OkStatus(); };
    return LastNode();
  }
  template <class... A>
  int32_t Launch(std::string name, A... accesses) {
    Node(std::move(name), NodeKind::kLaunch, accesses...).code.call_fallback = [](void*, void* const*) {
      return absl::OkStatus();
    };
    return LastNode();
  }
  template <class... A>
  int32_t Control(std::string name, A... accesses) {
    Node(std::move(name), NodeKind::kControl, accesses...);
    return LastNode();
  }
  int32_t Copy(std::string name, int32_t from, int32_t to) {
    Node(std::move(name), NodeKind::kCopy, In{from}, Out{to});
    return LastNode();
  }
  int32_t Fill(std::string name, int32_t to) {
    NodeDecl& node = Node(std::move(name), NodeKind::kFill, Out{to});
    if (to >= 0 && to < static_cast<int32_t>(model.buffers.size())) {
      node.pattern.resize(model.buffers[to].type.size);
    }
    return LastNode();
  }
  void After(int32_t later, int32_t earlier) { node(later).after.push_back(earlier); }
  void InPlace(int32_t node_index, int32_t in, int32_t out) {
    node(node_index).in_place.push_back({in, out, kSerial, kSerial});
  }
  NodeDecl& node(int32_t index) { return model.nodes[index]; }

  // One type a size.
  static TypeInfo TypeOf(uint32_t bytes) {
    return {.mangled = bytes, .spelled = bytes, .size = bytes, .align = bytes & (~bytes + 1)};
  }

  Model model;

 private:
  Name NextName(std::string name) { return Name(std::move(name), "dir/a.cc", ++line_); }
  int32_t LastNode() const { return static_cast<int32_t>(model.nodes.size()) - 1; }

  static AccessDecl Decl(const In& a) { return {a.buffer, kSerial, AccessMode::kRead, false, a.box}; }
  static AccessDecl Decl(const Out& a) { return {a.buffer, kSerial, AccessMode::kWrite, false, a.box}; }
  static AccessDecl Decl(const Change& a) { return {a.buffer, kSerial, AccessMode::kReadWrite, false, a.box}; }
  static AccessDecl Decl(const Some& a) { return {a.buffer, kSerial, AccessMode::kWriteSome, false, a.box}; }
  static AccessDecl Decl(const Temporary& a) { return {a.buffer, kSerial, AccessMode::kScratch, false, a.box}; }
  static AccessDecl Decl(const AccessDecl& a) { return a; }
  template <class A>
  static AccessDecl Decl(const Loose<A>& a) {
    AccessDecl decl = Decl(a.access);
    decl.unordered = true;
    return decl;
  }
  template <class... A>
  NodeDecl& Node(std::string name, NodeKind kind, A... accesses) {
    NodeDecl node(NextName(std::move(name)), kind);
    (node.accesses.push_back(Decl(accesses)), ...);
    model.nodes.push_back(std::move(node));
    return model.nodes.back();
  }

  int line_ = 0;
};

// Devices of one driver: "host:0", "host:1", ... or "cuda:0", ...
inline PlanOptions Devices(int count, bool cuda = false) {
  PlanOptions options;
  options.runtime = &kRuntime;
  for (int i = 0; i < count; ++i)
    options.devices.push_back({(cuda ? "cuda:" : "host:") + std::to_string(i), cuda, 0, 0});
  return options;
}

// The plan of a graph without mistakes.
inline Plan PlanOf(const ModelBuilder& builder, const PlanOptions& options = Devices(1)) {
  absl::StatusOr<Plan> plan = MakePlan(builder.model, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

// "INVALID_ARGUMENT: graph 'g' ...", or "OK".
inline std::string MistakeOf(const ModelBuilder& builder, const PlanOptions& options = Devices(1)) {
  return MakePlan(builder.model, options).status().ToString();
}

// An entry of a table of graphs and what is said to them.
struct GraphVerdict {
  const char* name;
  void (*build)(ModelBuilder& g);
  const char* text;  // "OK", or an INVALID_ARGUMENT's whole message
  PlanOptions options = Devices(1);
};
inline void ExpectVerdict(const GraphVerdict& verdict) {
  ModelBuilder g;
  verdict.build(g);
  const absl::Status status = MakePlan(g.model, verdict.options).status();
  EXPECT_EQ(status.ok() ? "OK" : status.message(), verdict.text);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
}
template <class Entry>
std::string NameOfEntry(const testing::TestParamInfo<Entry>& info) {
  return info.param.name;
}

// The index of the only plan node of this name, -1 when there is none.
inline int32_t Find(const Plan& plan, const std::string& name) {
  int32_t found = -1;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    if (plan.nodes[n].name != name) continue;
    EXPECT_EQ(found, -1) << "two nodes are called " << name;
    found = static_cast<int32_t>(n);
  }
  return found;
}

}  // namespace penstock::graph
