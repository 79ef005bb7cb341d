// The part of HostileGraph about slices, aliases and States, and what is wrong with slices and spans: found dimension
// by dimension from the declaration, and element by element in a run.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "tests/fuzz/hostile_graph.h"

namespace penstock::fuzz {
namespace {

constexpr int64_t kStateBytes = int64_t{1} << 16;   // of a State that is made

__extension__ typedef __int128 Int128;

// Of constants that are right.
int64_t BytesIn(const Extent& extent, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (int i = 0; i < extent.rank; ++i) bytes *= extent.dims[static_cast<size_t>(i)].value;
  return bytes;
}

// A refusal of MakeState: not of a graph, so in a form of its own.
std::string CheckStateRefusal(const absl::Status& status, const std::vector<Known>& wrong) {
  const std::string text(status.message().data(), status.message().size());
  if (status.ok()) return "a State was made; known was: '" + wrong[0].subject + "' " + wrong[0].text;
  if (wrong.empty()) return "a State was not made: " + text;
  if (text.rfind("state '", 0) != 0) return "a refusal in another form: " + text;
  const bool told = std::any_of(wrong.begin(), wrong.end(), [&](const Known& k) {
    return text.find("state '" + k.subject) == 0 && text.find(k.text) != std::string::npos;
  });
  return told ? "" : "not told: " + wrong[0].text + ", in: " + text;
}

int64_t BytesOf(Element element) {
  return WithElement(element, []<class T>(T*) { return static_cast<int64_t>(sizeof(T)); });
}

Extent ExtentOf(int rank, const std::array<Dim, kMaxRank>& dims) {
  if (rank == 1) return Extent(dims[0]);
  return rank == 2 ? Extent(dims[0], dims[1]) : Extent(dims[0], dims[1], dims[2]);
}

bool AllConstant(const Extent& extent) {
  return std::all_of(extent.dims.begin(), extent.dims.begin() + extent.rank,
                     [](const Dim& dim) { return dim.is_constant(); });
}

using Sizes = std::vector<int64_t>;  // of each dimension

// Where elements lie in a run with these values of the parameters.
class InRun {
 public:
  InRun(const std::vector<BufferRecord>& buffers, const std::vector<int64_t>& values)
      : buffers_(buffers), values_(values) {}

  Sizes SizesOf(size_t b) const {
    const BufferRecord& buffer = buffers_[b];
    if (buffer.base < 0) return Values(buffer.extent);
    if (!buffer.box.whole) return Values(buffer.box.size);
    const auto base = static_cast<size_t>(buffer.base);
    Sizes sizes = SizesOf(base);
    sizes.back() = sizes.back() * BytesOf(buffers_[base].element) / BytesOf(buffer.element);
    return sizes;
  }

  // What `who` takes of buffer `b` that is not there; noted. Whether there is none.
  bool Inside(const std::string& who, size_t b, const Box& box, std::vector<Known>& wrong) const {
    if (box.whole) return true;
    const size_t before = wrong.size();
    const Sizes extents = SizesOf(b), from = Values(box.offset), sizes = Values(box.size);
    for (size_t d = 0; d < extents.size(); ++d) {
      const bool inside = from[d] >= 0 && from[d] <= extents[d] && sizes[d] <= extents[d] - from[d];
      if (!inside)
        wrong.push_back({who, "takes " + std::to_string(sizes[d]) + " elements from " + std::to_string(from[d]) +
                                  " on in dimension " + std::to_string(d)});
    }
    return wrong.size() == before;
  }

  // Whether the elements of the box, which is inside, follow one another.
  bool Contiguous(size_t b, const Box& box) const {
    const Sizes starts = Chosen(StartsOf(b), SizesOf(b), box);
    for (size_t i = 1; i < starts.size(); ++i) {
      if (starts[i] != starts[i - 1] + BytesOf(buffers_[b].element)) return false;
    }
    return true;
  }

 private:
  int64_t Value(const Dim& dim) const {
    return dim.is_constant() ? dim.value : values_[static_cast<size_t>(dim.param)];
  }
  Sizes Values(const Extent& extent) const {
    Sizes values;
    for (int i = 0; i < extent.rank; ++i) values.push_back(Value(extent.dims[static_cast<size_t>(i)]));
    return values;
  }
  static int64_t Count(const Sizes& sizes) {
    int64_t n = 1;
    for (const int64_t size : sizes) n = size == 0 ? 0 : n * size;
    return std::find(sizes.begin(), sizes.end(), 0) == sizes.end() ? n : 0;
  }

  // The byte of the memory at which each element of a buffer begins, in C order.
  Sizes StartsOf(size_t b) const {
    const BufferRecord& buffer = buffers_[b];
    const int64_t own = BytesOf(buffer.element);
    Sizes starts;
    if (buffer.base < 0) {
      for (int64_t i = 0; i < Count(SizesOf(b)); ++i) starts.push_back(i * own);
      return starts;
    }
    const auto base = static_cast<size_t>(buffer.base);
    const Sizes of = StartsOf(base);
    if (!buffer.box.whole) return Chosen(of, SizesOf(base), buffer.box);
    if (buffer.element == buffers_[base].element) return of;
    const int64_t first = of.empty() ? 0 : of.front();  // of another type: all of it, which is dense
    for (int64_t i = 0; i < Count(SizesOf(b)); ++i) starts.push_back(first + i * own);
    return starts;
  }

  // The elements of the box.
  Sizes Chosen(const Sizes& starts, const Sizes& sizes, const Box& box) const {
    if (box.whole) return starts;
    const Sizes from = Values(box.offset), count = Values(box.size);
    Sizes chosen;
    for (int64_t i = 0; i < static_cast<int64_t>(starts.size()); ++i) {
      bool inside = true;
      int64_t rest = i;
      for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
        const int64_t at = rest % sizes[d];
        inside = inside && at >= from[d] && at - from[d] < count[d];
      }
      if (inside) chosen.push_back(starts[static_cast<size_t>(i)]);
    }
    return chosen;
  }

  const std::vector<BufferRecord>& buffers_;
  const std::vector<int64_t>& values_;
};

}  // namespace

size_t HostileGraph::RootOf(size_t buffer) const {
  while (buffers[buffer].base >= 0) buffer = static_cast<size_t>(buffers[buffer].base);
  return buffer;
}

std::vector<Known> HostileGraph::WrongInRun(const std::vector<int64_t>& values) const {
  const InRun run(buffers, values);
  std::vector<Known> wrong;
  for (const BufferRecord& b : buffers) {
    if (b.base >= 0) run.Inside(b.name, static_cast<size_t>(b.base), b.box, wrong);
  }
  if (!wrong.empty()) return wrong;  // where the accesses to aliases lie is not known
  for (const AccessRecord& a : accesses) {
    if (!run.Inside(a.node, a.buffer, a.box, wrong) || !a.span) continue;
    if (!run.Contiguous(a.buffer, a.box)) wrong.push_back({a.node, "are not contiguous"});
  }
  return wrong;
}

// Where no parameter takes part, Compile can tell.
void HostileGraph::CheckSpans(size_t first_access) {
  for (size_t i = first_access; i < accesses.size(); ++i) {
    const AccessRecord& a = accesses[i];
    if (!a.span || !small) continue;
    bool constant = a.box.whole || (AllConstant(a.box.offset) && AllConstant(a.box.size));
    bool sound = a.box.whole || a.inside;
    for (auto b = static_cast<int32_t>(a.buffer); b >= 0; b = buffers[static_cast<size_t>(b)].base) {
      const BufferRecord& buffer = buffers[static_cast<size_t>(b)];
      const bool part = buffer.base >= 0 && !buffer.box.whole;
      sound = sound && buffer.sound;
      constant = constant && sound && (part ? AllConstant(buffer.box.offset) : AllConstant(buffer.extent));
      constant = constant && (!part || AllConstant(buffer.box.size));
    }
    if (constant && sound && !InRun(buffers, {}).Contiguous(a.buffer, a.box)) Note("are not contiguous");
  }
}

int64_t HostileGraph::MostOf(const Dim& dim) const {
  if (dim.is_constant()) return std::max<int64_t>(dim.value, -1);
  if (dim.graph != graph.model().serial || static_cast<size_t>(dim.param) >= params.size()) return -1;
  const ParamRecord& param = params[static_cast<size_t>(dim.param)];
  return param.type != ParamRecord::Type::kFloat && param.has_max ? std::max<int64_t>(param.max, -1) : -1;
}

bool HostileGraph::IsOffset(const Dim& dim) {
  if (dim.is_constant()) {
    if (dim.value < 0) Note("is " + std::to_string(dim.value));
    return dim.value >= 0;
  }
  if (!IsParam(dim)) return false;
  const bool integer = params[static_cast<size_t>(dim.param)].type != ParamRecord::Type::kFloat;
  if (!integer) Note("not an integer");
  return integer;
}

bool HostileGraph::CheckBox(const BufferRecord& of, const Box& box) {
  const size_t before = known.size();
  bool sound = true;
  if (box.offset.rank != of.extent.rank || box.size.rank != of.extent.rank) {
    Note("with " + std::to_string(box.offset.rank) + " offsets and " + std::to_string(box.size.rank) +
         " sizes; the buffer has " + std::to_string(of.extent.rank) + " dimension");
    return false;
  }
  for (size_t d = 0; d < static_cast<size_t>(of.extent.rank); ++d) {
    const Dim &offset = box.offset.dims[d], &size = box.size.dims[d];
    const bool is_offset = IsOffset(offset);
    const int64_t limit = LimitOf(size), most = MostOf(of.extent.dims[d]);
    sound = sound && limit >= 0;
    if (!is_offset || limit < 0) continue;
    const int64_t from = offset.is_constant() ? offset.value : 0, count = size.is_constant() ? size.value : 0;
    if (from <= most && count <= most - from) continue;
    Note("takes " + std::to_string(count) + " elements" +
         (offset.is_constant() ? " from " + std::to_string(from) + " on" : "") + " in dimension " + std::to_string(d));
    Note(std::to_string(most));
  }
  return sound && known.size() == before;
}

// Mostly one that is inside, of constants or parameters.
Box HostileGraph::MakeBox(const BufferRecord& of) {
  const auto rank_of = [&] { return Hostile() ? 1 + bytes_.Below(3) : std::clamp(of.extent.rank, 1, kMaxRank); };
  const int rank = rank_of();
  std::array<Dim, kMaxRank> from, sizes;
  for (size_t d = 0; d < kMaxRank && d < static_cast<size_t>(rank); ++d) {
    const int64_t most = std::max<int64_t>(MostOf(of.extent.dims[d]), 0);
    const int64_t size = most == INT64_MAX ? 1 : bytes_.Byte() % (most + 1);
    const int64_t room = most - size;
    from[d] = room == INT64_MAX ? 1 : bytes_.Byte() % (room + 1);
    sizes[d] = Hostile() && from[d].value > 0 ? room + size : size;
    if (bytes_.Chance(40)) from[d] = ParamDim(false);
    if (bytes_.Chance(40)) sizes[d] = ParamDim(true);
    if (Hostile()) from[d] = OddDim();
    if (Hostile()) sizes[d] = OddDim();
  }
  return Slice(ExtentOf(rank, from), ExtentOf(rank_of(), sizes));
}

// Mostly of one shape, inside both.
std::pair<Box, Box> HostileGraph::MakeBoxes(const BufferRecord& from, const BufferRecord& to) {
  const int rank = from.extent.rank;
  std::array<Dim, kMaxRank> starts[2], sizes[2];
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    const int64_t rooms[] = {std::max<int64_t>(MostOf(from.extent.dims[d]), 0),
                             std::max<int64_t>(MostOf(to.extent.dims[d]), 0)};
    const int64_t size = bytes_.Byte() % (std::min<int64_t>({rooms[0], rooms[1], 1000}) + 1);
    const Dim dim = bytes_.Chance(40) ? ParamDim(true) : Dim(size);
    for (size_t side = 0; side < 2; ++side) {
      starts[side][d] =
          bytes_.Chance(40) ? ParamDim(false) : Dim(bytes_.Byte() % (std::min<int64_t>(rooms[side] - size, 1000) + 1));
      sizes[side][d] = Hostile() ? OddDim() : dim;
    }
  }
  const Box boxes[] = {Slice(ExtentOf(rank, starts[0]), ExtentOf(rank, sizes[0])),
                       Slice(ExtentOf(rank, starts[1]), ExtentOf(rank, sizes[1]))};
  const bool inside[] = {CheckBox(from, boxes[0]), CheckBox(to, boxes[1])};
  if (inside[0] && inside[1] && !(boxes[0].size == boxes[1].size)) Note("another extent");
  accesses.push_back({subject_, IndexOf(from), boxes[0], inside[0]});
  accesses.push_back({subject_, IndexOf(to), boxes[1], inside[1]});
  return {boxes[0], boxes[1]};
}

Dim HostileGraph::ParamDim(bool with_maximum) {
  const size_t start = bytes_.Byte();
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamRecord& param = params[(start + i) % params.size()];
    if (param.type == ParamRecord::Type::kFloat || (with_maximum && !param.has_max)) continue;
    return ParamHandle<int32_t>(graph.model().serial, param.index);
  }
  return 1;
}

// A handle that no alias can be of; noted.
template <class T>
BufferHandle<T> HostileGraph::OddBase() {
  const uint32_t serial = graph.model().serial;
  const int what = bytes_.Below(5);
  Note(what < 2 ? "an alias of no buffer" : "an alias of a buffer of another graph");
  switch (what) {
    case 0: return BufferHandle<T>();
    case 1: return BufferHandle<T>(serial, -7);
    case 2: return BufferHandle<T>(other_.model().serial, 0);
    case 3: return BufferHandle<T>(serial, INT32_MAX);
    default: return BufferHandle<T>(serial, static_cast<int32_t>(buffers.size()));  // itself
  }
}

void HostileGraph::AddAlias() {
  const Name name = MakeName("b", buffer_names_);
  const size_t any = bytes_.Byte();
  const bool part = bytes_.Chance(160);
  auto element = static_cast<Element>(bytes_.Below(kElements));
  const bool odd = Hostile() || buffers.empty();
  BufferRecord record{subject_, element, graph.model().serial, -1, BufferRole::kInternal, {}};
  record.sound = !odd;
  if (!odd) record.base = static_cast<int32_t>(any % buffers.size());
  const BufferRecord base = odd ? record : buffers[static_cast<size_t>(record.base)];
  if (part && !Hostile()) element = record.element = base.element;
  if (part) {
    record.box = odd ? Slice(0, 1) : MakeBox(base);
    record.extent = record.box.size;
    if (!odd) record.sound = base.sound && CheckBox(base, record.box);
    if (element != base.element) Note("another element type");
    WithElement(element, [&]<class T>(T*) {
      const auto of = odd ? OddBase<T>() : BufferHandle<T>(base.graph, base.index);
      record.index = graph.Alias(name, of, record.box).index();
    });
  } else {
    if (base.sound && !odd) record.sound = CheckReadAs(record);
    record.extent = base.extent;
    Dim& row = record.extent.dims[static_cast<size_t>(base.extent.rank) - 1];
    if (record.sound && row.is_constant()) {  // beside a dimension of 0 it may be as long as it likes
      const Int128 elements = static_cast<Int128>(row.value) * BytesOf(base.element) / BytesOf(element);
      row = static_cast<int64_t>(std::min<Int128>(elements, std::numeric_limits<int64_t>::max()));
    }
    WithElement(base.element, [&]<class T>(T*) {
      const auto of = odd ? OddBase<T>() : BufferHandle<T>(base.graph, base.index);
      WithElement(element, [&]<class U>(U*) { record.index = graph.Alias<U>(name, of).index(); });
    });
  }
  record.sound = record.sound && base.sound;
  buffers.push_back(std::move(record));
}

// Whether all of a buffer can be read as other elements; a mistake is noted.
bool HostileGraph::CheckReadAs(const BufferRecord& alias) {
  const BufferRecord& base = buffers[static_cast<size_t>(alias.base)];
  if (base.element == alias.element) return true;
  for (auto b = alias.base; b >= 0; b = buffers[static_cast<size_t>(b)].base) {
    const BufferRecord& of = buffers[static_cast<size_t>(b)];
    if (of.base < 0 || of.box.whole) continue;
    Note("a part of another buffer");
    return false;
  }
  const Dim& row = base.extent.dims[static_cast<size_t>(base.extent.rank) - 1];
  if (!row.is_constant()) {
    Note("a parameter sets the length of its rows");
    return false;
  }
  const int64_t bytes = row.value * BytesOf(base.element);  // below 2^62, or the base would not be sound
  if (bytes % BytesOf(alias.element) == 0) return true;
  Note("a row has " + std::to_string(bytes) + " bytes");
  return false;
}

void HostileGraph::AddState() {
  const auto element = static_cast<Element>(bytes_.Below(kElements));
  WithElement(element, [&]<class T>(T*) { MakeState<T>(); });
}

// What MakeState must say: of several mistakes, one.
std::vector<Known> HostileGraph::WrongState(const Extent& extent, int64_t element_bytes, int device,
                                            int64_t initial) const {
  std::vector<Known> wrong;
  const auto note = [&](const std::string& text) { wrong.push_back({subject_, text}); };
  if (device < 0 || device > 1) note(std::to_string(device));
  Int128 bytes = element_bytes;
  std::string sizes;
  bool empty = false;
  for (int i = 0; i < extent.rank; ++i) {
    const Dim& dim = extent.dims[static_cast<size_t>(i)];
    if (!dim.is_constant()) note("is a parameter");
    if (dim.value < 0) note(std::to_string(dim.value));
    empty = empty || dim.value == 0;
    bytes = std::min(bytes, Int128{kMostBytes} + 1) * std::max<int64_t>(dim.value, 1);
    sizes += (i > 0 ? " x " : "") + std::to_string(dim.value);
  }
  if (!wrong.empty()) return wrong;
  const int64_t elements = empty ? 0 : static_cast<int64_t>(std::min(bytes, Int128{kMostBytes}) / element_bytes);
  if (bytes > kMostBytes) note(sizes);
  if (!empty && bytes > kDeviceBytes) note(std::to_string(elements * element_bytes));
  if (initial != 0 && initial != elements) note(std::to_string(initial));
  return wrong;
}

template <class T>
void HostileGraph::MakeState() {
  const size_t known_before = known.size();
  const bool abroad = Hostile();
  const Name name = MakeName("b", buffer_names_);
  std::array<Dim, kMaxRank> dims;
  for (Dim& dim : dims) dim = Hostile() ? OddDim() : bytes_.Byte() % 9;
  Extent extent = ExtentOf(1 + bytes_.Below(3), dims);
  constexpr int kOdd[] = {INT32_MIN, -1, 2, INT32_MAX};
  int device = abroad ? 0 : Hostile() ? kOdd[bytes_.Below(4)] : bytes_.Below(2);
  std::vector<T> initial(Hostile() ? bytes_.Byte() : 0);
  std::vector<Known> wrong = WrongState(extent, sizeof(T), device, static_cast<int64_t>(initial.size()));
  if (name.view().empty()) wrong.push_back({subject_, "has no name"});
  if (wrong.empty() && BytesIn(extent, sizeof(T)) > kStateBytes) {  // right, but too much to make here
    extent = 4;
    initial.clear();
  }
  Runtime& runtime = abroad ? other_runtime_ : runtime_;
  absl::StatusOr<State<T>> state =
      runtime.template MakeState<T>(name, extent, std::span<const T>(initial), StateOptions{device});
  if (!wrong.empty() || !state.ok()) {
    if (problem.empty()) problem = CheckStateRefusal(state.status(), wrong);
    known.resize(known_before);
    buffer_names_.pop_back();
    return;
  }
  if (abroad) Note("belongs to another runtime");
  const auto handle = graph.Use(*state);
  small = small && BytesIn(extent, 1) <= kSmallElements;
  BufferRecord record{subject_, kElementOf<T>, handle.graph(), handle.index(), BufferRole::kState, extent, true};
  record.state = std::make_shared<State<T>>(*std::move(state));
  buffers.push_back(std::move(record));
}

}  // namespace penstock::fuzz
