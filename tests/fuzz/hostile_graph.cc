#include "tests/fuzz/hostile_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace penstock::fuzz {
namespace {

__extension__ typedef __int128 Int128;

constexpr int kMostParams = 4, kMostBuffers = 8, kMostNodes = 14;

constexpr std::array<int64_t, 12> kOddNumbers = {
    -1,        INT64_MIN, INT64_MAX, int64_t{1} << 31, (int64_t{1} << 31) - 1, int64_t{1} << 62, (int64_t{1} << 62) + 1,
    INT32_MIN, 65536,     0,         int64_t{1} << 40, -(int64_t{1} << 33)};

// What callables do with an argument: touch every element they were promised, so that a wrong address or size shows.
template <class T>
void TouchElements(T* data, int64_t count) {
  volatile unsigned char sink = 0;
  auto* bytes = reinterpret_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T)); ++i)
    sink = static_cast<unsigned char>(sink ^ bytes[i]);
  if constexpr (!std::is_const_v<T>) {
    if (count > 0) std::memset(data, 0x5a, static_cast<size_t>(count) * sizeof(T));
  }
}
template <class T>
void Touch(const View<T>& view) {
  for (int64_t z = 0; z < view.depth; ++z) {
    for (int64_t y = 0; y < view.height; ++y) {
      if (view.width > 0) TouchElements(&view(z, y, 0), view.width);
    }
  }
}
template <class T>
void Touch(std::span<T> span) {
  TouchElements(span.data(), static_cast<int64_t>(span.size()));
}
void Touch(int32_t) {}

// One functor a rank. The whole view is touched by the first index: others run beside it.
struct OverLine {
  template <class... A>
  void operator()(int64_t x, const A&... args) const {
    if (x == 0) (Touch(args), ...);
  }
};
struct OverPlane {
  template <class... A>
  void operator()(Index2 i, const A&... args) const {
    if (i.y == 0 && i.x == 0) (Touch(args), ...);
  }
};
struct OverSpace {
  template <class... A>
  void operator()(Index3 i, const A&... args) const {
    if (i.z == 0 && i.y == 0 && i.x == 0) (Touch(args), ...);
  }
};

// Never called: there is no CUDA device where this runs.
void KernelOfNothing() {}
void KernelOfOne(float*) {}
void KernelOfThree(const float*, float*, int32_t) {}
void KernelOfPointers(const float*, float*, const float*) {}
void KernelOfView(View<float>, int32_t) {}

absl::Status Answer(int failure) {
  if (failure == 1) return absl::DataLossError("the callable says no");
  if (failure == 2) throw std::runtime_error("the callable throws");
  return absl::OkStatus();
}

// Host callables: one takes spans, the other Views.
struct OverSpans {
  int failure;
  template <class... A>
  absl::Status operator()(const A&... args) const {
    (Touch(args), ...);
    return Answer(failure);
  }
};
template <class A>
constexpr bool kIsSpan = false;
template <class T>
constexpr bool kIsSpan<std::span<T>> = true;
struct OverViews {
  int failure;
  template <class... A>
    requires(!kIsSpan<A> && ...)
  absl::Status operator()(const A&... args) const {
    (Touch(args), ...);
    return Answer(failure);
  }
};

bool Plain(const std::string& name) {
  return !name.empty() && name.size() < 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 0x7f && c != '\''; });
}

}  // namespace

HostileGraph::HostileGraph(ByteSource& bytes, Runtime& runtime, Runtime& other)
    : graph("fuzzed"), bytes_(bytes), runtime_(runtime), other_runtime_(other) {
  constexpr int kLevels[] = {0, 4, 16, 64};
  hostility_ = kLevels[bytes_.Below(4)];
  const auto far = other_.InOut<float>("far", 4);
  other_nodes_.push_back(other_.Fill("far node", far, 1.f));
  for (int i = bytes_.Below(kMostParams + 1); i > 0; --i) AddParam();
  for (int i = bytes_.Below(kMostBuffers + 1); i > 0; --i) {
    const int what = bytes_.Below(8);
    what < 5 ? AddBuffer() : what < 7 ? AddAlias() : AddState();
  }
  for (int i = bytes_.Below(kMostNodes + 1); i > 0; --i) AddNode();
}

Name HostileGraph::MakeName(const char* kind, std::vector<std::string>& names) {
  std::string name = kind + std::to_string(names.size());
  if (Hostile()) {
    switch (bytes_.Below(8)) {
      case 0: name.clear(); break;
      case 1:
        name = names.empty() ? name : names[static_cast<size_t>(bytes_.Below(static_cast<int>(names.size())))];
        break;
      case 2: name.assign(300, 'n'); break;
      case 3: name = "\xff\xfe\x80"; break;
      case 4: name = "it's \"quoted\" \\ 'twice'"; break;
      case 5: name = "two\nlines: graph 'g': 0 mistakes:\r\x1b[31m\t"; break;
      case 6: name = "%s%n%d"; break;
      default: name = std::string("nul\0inside", 10); break;
    }
  }
  const std::string seen(name.c_str());  // a name ends at its first NUL
  subject_ = Plain(seen) ? seen : "";
  if (seen.empty()) {
    Note("has no name");
  } else if (std::find(names.begin(), names.end(), seen) != names.end()) {
    Note("names are unique among the ");
  }
  names.push_back(seen);
  return Name(std::move(name));
}

void HostileGraph::AddParam() {
  const Name name = MakeName("p", param_names_);
  ParamRecord record{subject_, static_cast<ParamRecord::Type>(bytes_.Below(4)), false, 0, -1};
  record.has_max = !Hostile() && (record.type != ParamRecord::Type::kFloat || Hostile());
  record.max = Hostile() ? kOddNumbers[static_cast<size_t>(bytes_.Below(kOddNumbers.size()))] : bytes_.Below(17);
  if (record.has_max && record.type == ParamRecord::Type::kFloat) {
    Note("not an integer");
  } else if (record.has_max && record.max < 0) {
    Note("AtMost(" + std::to_string(record.max) + ")");
  }
  const auto declare = [&]<class T>(T) {
    return record.has_max ? graph.Param<T>(name, AtMost(record.max)).index() : graph.Param<T>(name).index();
  };
  switch (record.type) {
    case ParamRecord::Type::kInt: record.index = declare(int32_t{}); break;
    case ParamRecord::Type::kLong: record.index = declare(int64_t{}); break;
    case ParamRecord::Type::kByte: record.index = declare(uint8_t{}); break;
    case ParamRecord::Type::kFloat: record.index = declare(float{}); break;
  }
  params.push_back(std::move(record));
}

Dim HostileGraph::OddDim() {
  switch (bytes_.Below(6)) {
    case 0: return ParamHandle<int32_t>();
    case 4: return ParamHandle<int32_t>(graph.model().serial, -7);
    case 1: return ParamHandle<int32_t>(other_.model().serial, 0);
    case 2: return ParamHandle<int32_t>(graph.model().serial, INT32_MAX);
    case 3: return bytes_.Long();
    default: return kOddNumbers[static_cast<size_t>(bytes_.Below(kOddNumbers.size()))];
  }
}

Dim HostileGraph::MakeDim() {
  if (Hostile()) return OddDim();
  const int choice = bytes_.Byte();
  if (choice < 64 && !params.empty()) {
    const ParamRecord& param = params[static_cast<size_t>(choice) % params.size()];
    if (param.has_max || Hostile()) return ParamHandle<int32_t>(graph.model().serial, param.index);
  }
  return choice % 17;
}

bool HostileGraph::IsParam(const Dim& dim) {
  const bool ours = dim.graph == graph.model().serial && static_cast<size_t>(dim.param) < params.size();
  if (!ours) Note(dim.param < 0 ? "is no parameter; its handle was never set" : "is a parameter of another graph");
  return ours;
}

int64_t HostileGraph::LimitOf(const Dim& dim) {
  if (dim.is_constant()) {
    if (dim.value < 0) Note(std::to_string(dim.value));
    return std::max<int64_t>(dim.value, -1);
  }
  if (!IsParam(dim)) return -1;
  const ParamRecord& param = params[static_cast<size_t>(dim.param)];
  if (param.type != ParamRecord::Type::kFloat && param.has_max) return std::max<int64_t>(param.max, -1);
  Note(param.type == ParamRecord::Type::kFloat ? "not an integer" : "no maximum");
  return -1;
}

Extent HostileGraph::MakeExtent(int64_t element_bytes) {
  const int rank = 1 + bytes_.Below(3);
  std::array<Dim, kMaxRank> dims;
  std::array<int64_t, kMaxRank> limits{1, 1, 1};
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    dims[d] = MakeDim();
    limits[d] = LimitOf(dims[d]);
  }
  const int64_t least = *std::min_element(limits.begin(), limits.end());
  // A dimension of 0 counts as 1. Not more than 2^126 after two factors, so nothing overflows here.
  Int128 bytes = element_bytes;
  bool too_many = false;
  for (int i = 0; i < rank && least >= 0 && !too_many; ++i) {
    bytes *= std::max<int64_t>(limits[static_cast<size_t>(i)], 1);
    too_many = bytes > kMostBytes;
  }
  for (int i = 0; i < rank && too_many; ++i) Note(std::to_string(limits[static_cast<size_t>(i)]));
  small = small && least >= 0 && bytes / element_bytes <= kSmallElements;
  if (rank == 1) return Extent(dims[0]);
  return rank == 2 ? Extent(dims[0], dims[1]) : Extent(dims[0], dims[1], dims[2]);
}

void HostileGraph::AddBuffer() {
  const auto element = static_cast<Element>(bytes_.Below(kElements));
  const auto role = static_cast<BufferRole>(bytes_.Below(4));
  const bool internal = role == BufferRole::kInternal;
  Where where = bytes_.Chance(64) ? kPinned : internal ? kDevice : kHost;
  const Name name = MakeName("b", buffer_names_);
  if (Hostile()) where = static_cast<Where>(bytes_.Below(4));
  if (!internal && where == kDevice) where = kHost;  // what a launch binds is host memory
  if (internal && (where == kHost || where == kSlot)) Note("declare");
  WithElement(element, [&]<class T>(T*) {
    const size_t before = known.size();
    const Extent extent = MakeExtent(sizeof(T));
    BufferHandle<T> handle;
    switch (role) {
      case BufferRole::kInput: handle = graph.Input<T>(name, extent, where); break;
      case BufferRole::kOutput: handle = graph.Output<T>(name, extent, where); break;
      case BufferRole::kInOut: handle = graph.InOut<T>(name, extent, where); break;
      default: handle = graph.Buffer<T>(name, extent, where); break;
    }
    const bool has_data = role == BufferRole::kInput || role == BufferRole::kInOut;
    buffers.push_back({subject_, element, handle.graph(), handle.index(), role, extent, has_data});
    buffers.back().sound = known.size() == before && std::all_of(extent.dims.begin(), extent.dims.begin() + extent.rank,
                                                                 [&](const Dim& dim) { return MostOf(dim) >= 0; });
  });
}

template <class T>
BufferHandle<T> HostileGraph::OddHandle() {
  const uint32_t serial = graph.model().serial;
  picked_ = -1;
  switch (bytes_.Below(6)) {
    case 0: Note("access"); return BufferHandle<T>();
    case 4: Note("access"); return graph.Use(State<T>());
    case 1: Note("access"); return BufferHandle<T>(other_.model().serial, 0);
    case 2: Note("access"); return BufferHandle<T>(serial, INT32_MAX);
    case 3: Note("access"); return BufferHandle<T>(serial, -7);
    default: break;
  }
  for (const BufferRecord& b : buffers) {
    if (b.element == kElementOf<T>) continue;
    Note("type");
    return BufferHandle<T>(b.graph, b.index);
  }
  Note("access");
  return BufferHandle<T>();
}

// Mostly one that is right: an Input is not written, and what is read has data.
template <class T>
BufferHandle<T> HostileGraph::Pick(AccessMode mode, bool may_be_alias) {
  if (Hostile()) return OddHandle<T>();
  const bool any = Hostile();
  const size_t start = bytes_.Byte();
  for (size_t i = 0; i < buffers.size(); ++i) {
    BufferRecord& b = buffers[(start + i) % buffers.size()];
    if (b.element != kElementOf<T> || (b.base >= 0 && !may_be_alias)) continue;
    picked_ = b.index;
    BufferRecord& root = buffers[RootOf(static_cast<size_t>(b.index))];
    had_data_ = root.has_data;
    const bool is_read_only = root.role == BufferRole::kInput || root.role == BufferRole::kParam;
    if (!any && mode != AccessMode::kRead && is_read_only) continue;
    if (!any && mode != AccessMode::kWrite && !root.has_data) continue;
    return BufferHandle<T>(b.graph, b.index);
  }
  const Name name("more" + std::to_string(buffers.size()));
  const auto made = graph.InOut<T>(name, 8);
  buffers.push_back({std::string(name.view()), kElementOf<T>, made.graph(), made.index(), BufferRole::kInOut, 8, true});
  picked_ = made.index();
  had_data_ = true;
  return made;
}

// What is written first is mostly written whole, so that it may be read.
template <AccessMode M, class T>
AccessOf<T, M> HostileGraph::Access() {
  AccessOf<T, M> access{Pick<T>(M)};
  if (picked_ < 0) return access;
  if (M != AccessMode::kRead) MarkWritten(graph.model().serial, picked_);
  const BufferRecord& b = buffers[static_cast<size_t>(picked_)];
  if (b.state != nullptr && bytes_.Chance(128)) {
    access.buffer = {};
    access.state = static_cast<const State<T>*>(b.state.get())->record();
  }
  AccessRecord record{subject_, static_cast<size_t>(picked_)};
  if (bytes_.Chance(80) && (had_data_ || bytes_.Chance(64))) {
    access.box = record.box = MakeBox(b);
    if (b.sound) record.inside = CheckBox(b, access.box);
  }
  accesses.push_back(std::move(record));
  return bytes_.Chance(24) ? Unordered(access) : access;
}

template <class F>
NodeRef HostileGraph::WithAccess(F f) {
  const int choice = bytes_.Below(12);
  const auto of = [&]<class T>(T*) {
    switch (choice / 4) {
      case 0: return f(Reading<T>());
      case 1: return f(Writing<T>());
      default: return f(Changing<T>());
    }
  };
  switch (choice % 4) {
    case 0: return of(static_cast<float*>(nullptr));
    case 1: return of(static_cast<uint8_t*>(nullptr));
    case 2: return of(static_cast<Tile*>(nullptr));
    default: return of(static_cast<Pair*>(nullptr));
  }
}

// The arguments are picked in order: one buffer may come twice.
template <class F>
NodeRef HostileGraph::WithAccesses(F f) {
  switch (bytes_.Below(7)) {
    case 0: return f();
    case 1: {
      const auto a = Reading<float>();
      const auto b = Writing<uint8_t>();
      return f(a, b, PickParam());
    }
    case 2: {
      const auto a = Reading<float>();
      const auto b = Changing<float>();
      return f(a, b);
    }
    case 3: {
      const auto a = Writing<float>();
      const auto b = Writing<uint8_t>();
      const auto c = Reading<float>();
      return f(a, b, c);
    }
    case 4: {
      const auto a = Reading<Tile>();
      const auto b = Changing<Tile>();
      const auto c = Writing<Pair>();
      return f(a, b, c);
    }
    default: return WithAccess(f);
  }
}

ParamHandle<int32_t> HostileGraph::PickParam() {
  if (Hostile()) {
    Note("argument");
    return bytes_.Chance(128) ? ParamHandle<int32_t>() : ParamHandle<int32_t>(other_.model().serial, 0);
  }
  const size_t start = bytes_.Byte();
  const bool any = Hostile();
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamRecord& param = params[(start + i) % params.size()];
    if (param.type == ParamRecord::Type::kInt) return {graph.model().serial, param.index};
    if (!any) continue;
    Note("type");
    return {graph.model().serial, param.index};
  }
  const auto made = graph.Param<int32_t>(Name("q" + std::to_string(params.size())));
  params.push_back({"q" + std::to_string(params.size()), ParamRecord::Type::kInt, false, 0, made.index()});
  return made;
}

ParamHandle<float> HostileGraph::PickFloat() {
  if (Hostile()) {
    Note("argument");
    return bytes_.Chance(128) ? ParamHandle<float>() : ParamHandle<float>(other_.model().serial, 0);
  }
  const size_t start = bytes_.Byte();
  const bool any = Hostile();
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamRecord& param = params[(start + i) % params.size()];
    if (param.type == ParamRecord::Type::kFloat) return {graph.model().serial, param.index};
    if (!any) continue;
    Note("type");
    return {graph.model().serial, param.index};
  }
  const auto made = graph.Param<float>(Name("q" + std::to_string(params.size())));
  params.push_back({"q" + std::to_string(params.size()), ParamRecord::Type::kFloat, false, 0, made.index()});
  return made;
}

// Of what OnDevice has declared: one a parameter, with the first node that names it.
void HostileGraph::RecordValues() {
  const std::vector<BufferDecl>& declared = graph.model().buffers;
  while (buffers.size() < declared.size()) {
    const BufferDecl& decl = declared[buffers.size()];
    BufferRecord record{std::string(decl.name.view()),
                        Element::kFloat,
                        graph.model().serial,
                        static_cast<int32_t>(buffers.size()),
                        BufferRole::kParam,
                        decl.extent,
                        true};
    buffers.push_back(std::move(record));
  }
}

const BufferRecord* HostileGraph::RecordOf(uint32_t graph_serial, int32_t index) const {
  const bool ours = graph_serial == graph.model().serial && index >= 0 && static_cast<size_t>(index) < buffers.size();
  return ours ? &buffers[static_cast<size_t>(index)] : nullptr;
}

void HostileGraph::MarkWritten(uint32_t graph_serial, int32_t index) {
  if (RecordOf(graph_serial, index) == nullptr) return;
  BufferRecord& root = buffers[RootOf(static_cast<size_t>(index))];
  root.written = root.has_data = true;
}

NodeRef HostileGraph::AddCopy(const Name& name) {
  const auto element = static_cast<Element>(bytes_.Below(kElements));
  return WithElement(element, [&]<class T>(T*) -> NodeRef {
    const auto from = Pick<T>(AccessMode::kRead, Hostile());
    auto to = Pick<T>(AccessMode::kWrite, Hostile());
    const bool had_data = had_data_;
    // A Copy looks at the types of the buffers, not of the handles, and only when there are two buffers.
    std::erase_if(known, [&](const Known& k) { return k.subject == subject_ && k.text == "type"; });
    const BufferRecord *a = RecordOf(from.graph(), from.index()), *b = RecordOf(to.graph(), to.index());
    const bool typed = a != nullptr && b != nullptr && a->element == element && b->element == element;
    const bool meet = a != nullptr && b != nullptr && a != b && RootOf(IndexOf(*a)) == RootOf(IndexOf(*b));
    const bool needs_other = meet || (typed && !Hostile() && (a == b || !(a->extent == b->extent)));
    const bool parts =
        !needs_other && typed && a != b && a->sound && b->sound && had_data && a->extent.rank == b->extent.rank;
    if (needs_other) {
      const BufferRecord source = *a;
      const Name copy("copy" + std::to_string(buffers.size()));
      to = graph.Buffer<T>(copy, source.extent);
      buffers.push_back({std::string(copy.view()), element, to.graph(), to.index(), BufferRole::kInternal,
                         source.extent, true, true, source.sound});
    } else if (a != nullptr && a == b) {
      Note("to itself");
    } else if (a != nullptr && b != nullptr) {
      if (a->element != b->element) Note("another element type");
      if (a->sound && b->sound && !(a->extent == b->extent)) Note("another extent");
    }
    MarkWritten(to.graph(), to.index());
    if (!parts || !bytes_.Chance(128)) return graph.Copy(name, from, to);
    std::erase_if(known, [&](const Known& k) { return k.subject == subject_ && k.text == "another extent"; });
    const auto [taken, given] = MakeBoxes(*a, *b);
    return graph.Copy(name, Read(from, taken), Write(to, given));
  });
}

template <class T>
NodeRef HostileGraph::FillWith(const Name& name, T value) {
  const auto to = Writing<T>();
  return graph.Fill(name, to, value);
}

NodeRef HostileGraph::AddFill(const Name& name) {
  switch (bytes_.Below(3)) {
    case 0: return FillWith<uint8_t>(name, bytes_.Byte());
    case 1: return FillWith<float>(name, 1.5f);
    default: return FillWith<Colour>(name, {1, 2, 3});
  }
}

NodeRef HostileGraph::AddParallelFor(const Name& name) {
  const Extent extent = MakeExtent(1);
  const int rank = Hostile() ? 1 + bytes_.Below(3) : extent.rank;
  if (rank != extent.rank) Note(std::to_string(rank) + "-D index");
  const std::string subject = subject_;
  switch (rank) {
    case 1:
      return WithAccesses([&](auto... a) -> NodeRef { return graph.ParallelFor(name, extent, OverLine{}, a...); });
    case 2: return WithAccess([&](auto a) -> NodeRef { return graph.ParallelFor(name, extent, OverPlane{}, a); });
    default: return WithAccess([&](auto a) -> NodeRef { return graph.ParallelFor(name, extent, OverSpace{}, a, 7); });
  }
}

KernelShape HostileGraph::MakeShape() {
  constexpr uint32_t kOddBlocks[] = {0, 1, 1024, 1025, 65536, UINT32_MAX};
  const auto block = [&]() -> uint32_t { return Hostile() ? kOddBlocks[bytes_.Below(6)] : 1 + bytes_.Byte() % 8; };
  const auto shared = static_cast<uint32_t>(bytes_.Byte()) << 8;
  std::array<uint32_t, 3> blocks{block(), 1, 1};
  std::array<Dim, 3> dims{MakeDim(), Dim(1), Dim(1)};
  const bool per_thread = bytes_.Chance(128);
  if (!per_thread) {
    blocks[1] = block(), blocks[2] = block();
    dims[1] = MakeDim(), dims[2] = MakeDim();
  }
  const Int128 threads = static_cast<Int128>(blocks[0]) * blocks[1] * blocks[2];
  if (threads < 1 || threads > 1024) Note(std::to_string(blocks[0]));
  const int64_t most[] = {INT32_MAX * (per_thread ? std::max<int64_t>(1, blocks[0]) : 1), 65535, 65535};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t limit = LimitOf(dims[i]);
    if (limit > most[i]) Note(std::to_string(limit));
  }
  KernelShape shape = per_thread ? Threads(dims[0], blocks[0], shared) : Blocks(dims, blocks, shared);
  shape.by_occupancy = per_thread && blocks[0] <= 256 && (shared >> 8) % 3 == 0;
  return (shared >> 8) % 2 == 0 ? shape : shape.Programmatic();
}

// Nothing compiles it: there is no CUDA device where this runs.
Source HostileGraph::MakeSource() {
  const bool no_text = Hostile(), no_kernel = Hostile();
  if (no_text) Note("its source has no text");
  if (no_kernel) Note("its source names no kernel");
  return {no_text ? "" : "a text", no_kernel ? "" : "kernel<int>"};
}

NodeRef HostileGraph::AddKernel(const Name& name) {
  const KernelShape shape = MakeShape();
  const bool fallback = !Hostile();
  const auto finish = [&](auto node, auto f) -> NodeRef {
    return fallback ? static_cast<NodeRef>(node.HostFallback(f)) : node;
  };
  needs_twin_ = !fallback;
  switch (bytes_.Below(4)) {
    case 0: {
      if (++kernels_of_nothing_ % 2 == 0) return finish(graph.Kernel(name, MakeSource(), shape), [] {});
      return finish(graph.Kernel(name, &KernelOfNothing, shape), [] {});
    }
    case 1: {
      const auto a = Changing<float>();
      return finish(graph.Kernel(name, &KernelOfOne, shape, a), [](float*) {});
    }
    case 2: {
      const auto a = Reading<float>();
      const auto b = Writing<float>();
      if (++kernels_of_three_ % 2 == 0) {
        const NodeRef node = finish(graph.Kernel(name, &KernelOfPointers, shape, a, b, OnDevice(PickFloat())),
                                    [](const float*, float*, const float*) {});
        RecordValues();
        return node;
      }
      return finish(graph.Kernel(name, &KernelOfThree, shape, a, b, PickParam()), [](const float*, float*, int32_t) {});
    }
    default: {
      const auto a = Changing<float>();
      return finish(graph.Kernel(name, &KernelOfView, shape, a, 3), [](View<float> view, int32_t) { Touch(view); });
    }
  }
}

NodeRef HostileGraph::AddLaunch(const Name& name) {
  const auto a = Writing<float>();
  const auto b = Reading<uint8_t>();
  auto node = graph.Launch(name, [](LaunchContext&, float*, const uint8_t*) {}, a, b);
  needs_twin_ = Hostile();
  if (needs_twin_) return node;
  const int failure = FailureOf();
  return node.HostFallback([failure](float*, const uint8_t*) { return Answer(failure); });
}

NodeRef HostileGraph::AddHost(const Name& name) {
  const int failure = FailureOf();
  const bool views = bytes_.Chance(96);
  const size_t first = accesses.size();
  const NodeRef node = WithAccesses([&](auto... a) -> NodeRef {
    return views ? graph.Host(name, OverViews{failure}, a...) : graph.Host(name, OverSpans{failure}, a...);
  });
  for (size_t i = first; i < accesses.size(); ++i) accesses[i].span = !views;
  CheckSpans(first);
  return node;
}

int HostileGraph::FailureOf() {
  if (!bytes_.Chance(8)) return 0;
  fails = true;
  return 1 + bytes_.Below(2);
}

NodeRef HostileGraph::AddKind() {
  const int kind = bytes_.Below(8);
  const Name name = MakeName("n", node_names_);
  switch (kind) {
    case 0: return AddCopy(name);
    case 1: return AddFill(name);
    case 2: return AddKernel(name);
    case 3: return AddLaunch(name);
    case 4:
    case 5: return AddHost(name);
    default: return AddParallelFor(name);
  }
}

void HostileGraph::AddNode() {
  needs_twin_ = false;
  const NodeRef node = AddKind();
  nodes_.push_back(node);
  Decorate(node);
  if (needs_twin_) Note("host fallback");
}

void HostileGraph::Decorate(NodeRef node) {
  const int what = bytes_.Byte();
  const auto earlier = [&]() -> NodeRef& {
    return nodes_[static_cast<size_t>(bytes_.Below(static_cast<int>(nodes_.size())))];
  };
  if ((what & 1) != 0 && nodes_.size() > 1)
    node.After(nodes_[static_cast<size_t>(bytes_.Below(static_cast<int>(nodes_.size()) - 1))]);
  if ((what & 6) == 6) node.Priority(bytes_.Below(4) - 2);
  if ((what & 24) == 24) node.On(0);
  if (!Hostile()) return;
  constexpr int kOdd[] = {INT_MIN, -2, -1, 0, 1, 2, 64, INT_MAX};
  const int odd = kOdd[bytes_.Below(8)];
  switch (bytes_.Below(6)) {
    case 0:
      node.After(node);
      known.push_back({"", "wait for each other"});  // one cycle is told
      break;
    case 1:
      node.After(other_nodes_[0]);
      Note("far node");
      break;
    case 2: earlier().After(node); break;  // perhaps a cycle
    case 3:
      node.Priority(odd);
      if (odd != 64) break;
      graph.Deterministic();
      node.Nondeterministic();
      Note("is declared Nondeterministic");
      break;
    case 4:
      node.Concurrency(odd);
      if (odd < 1) Note("Concurrency(" + std::to_string(odd) + ")");
      break;
    default:
      node.On(odd);
      if (odd < -1 || odd > 1) {
        Note("device " + std::to_string(odd));
        needs_twin_ = false;  // on no device, nobody knows
      }
      break;
  }
}

}  // namespace penstock::fuzz
