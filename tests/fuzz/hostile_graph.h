// A graph declared through the public API as a fuzzer's bytes say: small ones that are right, and ones with mistakes of
// every kind the API lets through. What is known to be wrong is written down while declaring, so that a refusal can be
// judged without the code that refuses.
//
// Ownership: owns its graphs and what its callables use.
// Threads:   one declares; callables run on the runtime's threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/fuzz/byte_source.h"

namespace penstock::fuzz {

enum class Element : uint8_t { kByte, kFloat, kColour, kWide, kTile, kPair };
inline constexpr int kElements = 6;
struct Colour {
  float r, g, b;
};
struct Wide {
  uint64_t words[5];
};
// Of 32 and 64 bytes, so that the oracles of tests/graph can cut what is accessed in parts into atoms.
struct Tile {
  uint64_t words[4];
};
struct Pair {
  Tile tiles[2];
};
template <class T>
constexpr Element kElementOf = sizeof(T) == 1    ? Element::kByte
                               : sizeof(T) == 4  ? Element::kFloat
                               : sizeof(T) == 12 ? Element::kColour
                               : sizeof(T) == 40 ? Element::kWide
                               : sizeof(T) == 32 ? Element::kTile
                                                 : Element::kPair;
// Calls f with a null pointer of the element's type.
template <class F>
decltype(auto) WithElement(Element element, F f) {
  switch (element) {
    case Element::kByte: return f(static_cast<uint8_t*>(nullptr));
    case Element::kFloat: return f(static_cast<float*>(nullptr));
    case Element::kColour: return f(static_cast<Colour*>(nullptr));
    case Element::kWide: return f(static_cast<Wide*>(nullptr));
    case Element::kTile: return f(static_cast<Tile*>(nullptr));
    default: return f(static_cast<Pair*>(nullptr));
  }
}

inline constexpr int64_t kMostBytes = int64_t{1} << 62;  // that a buffer may have
inline constexpr int64_t kSmallElements = 2048;  // of what is run
inline constexpr int64_t kDeviceBytes = int64_t{1} << 30;  // of memory that the runtime's devices have

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
  bool has_data = false;  // bound with some, or some node before wrote it; of an alias: see what has the memory
  bool written = false;  // some node writes it; the same
  bool sound = true;  // its declaration holds no mistake
  int32_t base = -1;  // of an alias: the record it is of
  Box box{};  // of an alias
  std::shared_ptr<const void> state{};  // of kState: the State<T>
};

// An access through a handle that is right.
struct AccessRecord {
  std::string node;  // empty where a message may show it in another way
  size_t buffer = 0;  // index of its record
  Box box{};
  bool inside = true;  // the box holds no mistake
  bool span = false;  // a host callable gets it as a span
};

class HostileGraph {
 public:
  // States are made by `runtime`, wrong ones by `other`.
  HostileGraph(ByteSource& bytes, Runtime& runtime, Runtime& other);

  // The record of what has the memory of record `buffer`.
  size_t RootOf(size_t buffer) const;
  // What is wrong with slices and spans in a run with these values of the parameters.
  std::vector<Known> WrongInRun(const std::vector<int64_t>& values) const;

  Graph graph;
  std::vector<ParamRecord> params;
  std::vector<BufferRecord> buffers;
  std::vector<AccessRecord> accesses;
  std::vector<Known> known;
  std::string problem;  // empty, or what is wrong with how a State was refused
  bool fails = false;  // some callable returns an error or throws
  bool small = true;  // no extent, grid or number of bytes is too large to be run here

 private:
  void AddParam();
  void AddBuffer();
  void AddAlias();
  void AddState();
  void AddNode();
  void NewBuffer(Element element, const Extent& extent, BufferRole role, Where where);
  bool Hostile() { return hostility_ > 0 && bytes_.Chance(hostility_); }
  // Sets subject_.
  Name MakeName(const char* kind, std::vector<std::string>& names);
  Dim MakeDim();
  Dim OddDim();
  Extent MakeExtent(int64_t element_bytes);
  Box MakeBox(const BufferRecord& of);
  std::pair<Box, Box> MakeBoxes(const BufferRecord& from, const BufferRecord& to);
  // A parameter that may be an offset, or a size; 1 where there is none.
  Dim ParamDim(bool with_maximum);
  // Whether it is a parameter of the graph; a mistake is noted.
  bool IsParam(const Dim& dim);
  // The largest value the dimension may have; a mistake is noted and gives -1.
  int64_t LimitOf(const Dim& dim);
  // The same without a note.
  int64_t MostOf(const Dim& dim) const;
  // Whether an offset can be told from the dimension; a mistake is noted.
  bool IsOffset(const Dim& dim);
  // Notes what is wrong with a box of a buffer; false where something is.
  bool CheckBox(const BufferRecord& of, const Box& box);
  bool CheckReadAs(const BufferRecord& alias);
  // Notes spans that are not contiguous, of the accesses from this one on.
  void CheckSpans(size_t first_access);
  template <class T>
  BufferHandle<T> OddBase();
  template <class T>
  void MakeState();
  std::vector<Known> WrongState(const Extent& extent, int64_t element_bytes, int device, int64_t initial) const;
  void Note(const std::string& text) { known.push_back({subject_, text}); }

  // Sets picked_ to the record, -1 where the handle is a mistake, and had_data_.
  template <class T>
  BufferHandle<T> Pick(AccessMode mode, bool may_be_alias = true);
  // Null where the handle names no buffer of the graph.
  const BufferRecord* RecordOf(uint32_t graph_serial, int32_t index) const;
  void MarkWritten(uint32_t graph_serial, int32_t index);
  size_t IndexOf(const BufferRecord& record) const { return static_cast<size_t>(&record - buffers.data()); }
  template <class T>
  NodeRef FillWith(const Name& name, T value);
  template <class T>
  BufferHandle<T> OddHandle();
  template <AccessMode M, class T>
  AccessOf<T, M> Access();
  template <class T>
  auto Reading() {
    return Access<AccessMode::kRead, T>();
  }
  template <class T>
  auto Writing() {
    return Access<AccessMode::kWrite, T>();
  }
  template <class T>
  auto Changing() {
    return Access<AccessMode::kReadWrite, T>();
  }
  // Calls f with one access, or with up to three.
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
  Source MakeSource();
  ParamHandle<int32_t> PickParam();
  ParamHandle<float> PickFloat();
  void RecordValues();
  int FailureOf();
  void Decorate(NodeRef node);

  ByteSource& bytes_;
  Runtime& runtime_;
  Runtime& other_runtime_;
  int hostility_ = 0;  // of 256
  Graph other_{"other"};
  int32_t picked_ = -1;
  bool had_data_ = false;  // what was picked, before
  std::vector<NodeRef> nodes_, other_nodes_;
  std::vector<std::string> param_names_, buffer_names_, node_names_;
  int kernels_of_nothing_ = 0, kernels_of_three_ = 0;
  bool needs_twin_ = false;  // the node being declared has none
  std::string subject_;  // the name of what is being declared; empty where a message may show it in another way
};

}  // namespace penstock::fuzz
