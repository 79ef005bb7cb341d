// A graph declared through the public API as a fuzzer's bytes say: small ones that are right, and ones with mistakes of
// every kind the API lets through. What is known to be wrong is written down while declaring, so that a refusal can be
// judged without the code that refuses.
//
// Ownership: owns its graphs and what its callables use.
// Threads:   one declares; callables run on the runtime's threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "tests/fuzz/byte_source.h"

namespace penstock::fuzz {

enum class Element : uint8_t { kByte, kFloat, kColour, kWide };
struct Colour {
  float r, g, b;
};
struct Wide {
  uint64_t words[5];
};
template <class T>
constexpr Element kElementOf = sizeof(T) == 1    ? Element::kByte
                               : sizeof(T) == 4  ? Element::kFloat
                               : sizeof(T) == 12 ? Element::kColour
                                                 : Element::kWide;
// Calls f with a null pointer of the element's type.
template <class F>
decltype(auto) WithElement(Element element, F f) {
  switch (element) {
    case Element::kByte: return f(static_cast<uint8_t*>(nullptr));
    case Element::kFloat: return f(static_cast<float*>(nullptr));
    case Element::kColour: return f(static_cast<Colour*>(nullptr));
    default: return f(static_cast<Wide*>(nullptr));
  }
}

// A mistake that was made: one line of the refusal has both texts. An empty one is in every line.
struct Known {
  std::string subject, text;
};

struct ParamRecord {
  std::string name;  // empty where a message may show it in another way
  enum class Type : uint8_t { kInt, kLong, kByte, kFloat } type = Type::kInt;
  bool has_max = false;
  int64_t max = 0;
  int32_t index = -1;
};

struct BufferRecord {
  std::string name;  // the same
  Element element = Element::kByte;
  uint32_t graph = 0;
  int32_t index = -1;
  BufferRole role = BufferRole::kInternal;
  Extent extent;
  bool has_data = false;  // bound with some, or some node before wrote it
  bool written = false;  // some node writes it
};

class HostileGraph {
 public:
  explicit HostileGraph(ByteSource& bytes);

  Graph graph;
  std::vector<ParamRecord> params;
  std::vector<BufferRecord> buffers;
  std::vector<Known> known;
  bool fails = false;  // some callable returns an error or throws
  bool small = true;  // no extent, grid or number of bytes is too large to be run here

 private:
  void AddParam();
  void AddBuffer();
  void AddNode();
  void NewBuffer(Element element, const Extent& extent, BufferRole role, Where where);
  bool Hostile() { return hostility_ > 0 && bytes_.Chance(hostility_); }
  // Sets subject_.
  Name MakeName(const char* kind, std::vector<std::string>& names);
  Dim MakeDim();
  Dim OddDim();
  Extent MakeExtent(int64_t element_bytes);
  // The largest value the dimension may have; a mistake is noted and gives -1.
  int64_t LimitOf(const Dim& dim);
  void Note(const std::string& text) { known.push_back({subject_, text}); }

  template <class T>
  BufferHandle<T> Pick(AccessMode mode);
  template <class T>
  BufferHandle<T> OddHandle();
  // Calls f with one access, or with up to three, of element type float or uint8_t.
  template <class F>
  NodeRef WithAccess(F f);
  template <class F>
  NodeRef WithAccesses(F f);

  NodeRef AddKind();
  NodeRef AddCopy(const Name& name);
  NodeRef AddFill(const Name& name);
  NodeRef AddParallelFor(const Name& name);
  NodeRef AddKernel(const Name& name);
  NodeRef AddLaunch(const Name& name);
  NodeRef AddHost(const Name& name);
  KernelShape MakeShape();
  ParamHandle<int32_t> PickParam();
  int FailureOf();
  void Decorate(NodeRef node);

  ByteSource& bytes_;
  int hostility_ = 0;  // of 256
  Graph other_{"other"};
  std::vector<NodeRef> nodes_, other_nodes_;
  std::vector<std::string> param_names_, buffer_names_, node_names_;
  bool needs_twin_ = false;  // the node being declared has none
  std::string subject_;  // the name of what is being declared; empty where a message may show it in another way
};

}  // namespace penstock::fuzz
