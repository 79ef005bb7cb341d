// The parts of the declarations of algorithms that need no template: checks of what they access.
#include <string>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_histogram.h"
#include "penstock/detail/declare_rows.h"
#include "penstock/detail/declare_runs.h"
#include "penstock/detail/declare_scan.h"
#include "penstock/detail/declare_select.h"

namespace penstock::detail {
namespace {

bool IsOfGraph(const Model& model, const AccessTo& to) {
  if (to.state != nullptr) return true;
  return to.graph == model.serial && to.buffer >= 0 && to.buffer < model.buffers.count();
}
Extent ExtentOf(const Model& model, const AccessTo& to) {
  return FindAccessed(model, to.graph, to.buffer, *to.box, to.state).extent;
}
bool IsExtent(const Extent& extent) { return extent.rank >= 1 && extent.rank <= kMaxRank; }

// Whether it is one element in every run.
bool IsOne(const Extent& extent) {
  bool one = IsExtent(extent);
  for (int i = 0; one && i < extent.rank; ++i) one = extent.dims[static_cast<size_t>(i)] == Dim(1);
  return one;
}

// Whether two boxes of one buffer have no element in common in any run.
bool AreApart(const Model& model, const AccessTo& a, const AccessTo& b) {
  if (a.buffer != b.buffer || a.box->whole || b.box->whole) return false;
  const auto ends_before = [&](const Box& first, const Box& second, size_t i) {
    const Dim &begin = first.offset.dims[i], &next = second.offset.dims[i];
    const int64_t most = MostElements(model, Extent(first.size.dims[i]));
    int64_t between = 0;
    return begin.is_constant() && next.is_constant() && !__builtin_sub_overflow(next.value, begin.value, &between) &&
           between >= most;
  };
  for (int i = 0; i < kMaxRank && i < a.box->offset.rank && i < b.box->offset.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    if (ends_before(*a.box, *b.box, at) || ends_before(*b.box, *a.box, at)) return true;
  }
  return false;
}

// Whether both are boxes of one buffer or State.
bool MayBeSame(const Model& model, const AccessTo& a, const AccessTo& b) {
  if (!IsOfGraph(model, a) || !IsOfGraph(model, b) || a.state != b.state) return false;
  return a.state != nullptr || graph::BaseOf(model, BufferId(a.buffer)) == graph::BaseOf(model, BufferId(b.buffer));
}

std::string NameText(const Model& model, const AccessTo& to) {
  return graph::Quoted(to.state != nullptr ? to.state->name : model.buffers[to.buffer].name);
}
std::string ShapeText(const Model& model, const Extent& extent) {
  std::string text = "{";
  for (int i = 0; i < extent.rank; ++i) {
    const Dim& dim = extent.dims[static_cast<size_t>(i)];
    const ParamDecl* param = dim.is_constant() ? nullptr : graph::ParamOf(model, dim);
    text += i > 0 ? ", " : "";
    text += dim.is_constant() ? std::to_string(dim.value) : param != nullptr ? std::string(param->name.view()) : "?";
  }
  return text + "}";
}

template <class Text>
void RefuseAccess(const DeclarationSink& sink, const Name& node, Text text) {
  sink.Visit([&](auto& to) { to.Refuse([&] { return graph::Prefix(sink.model(), "node", node) + ": " + text(); }); });
}

}  // namespace

void CheckCount(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& count) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, count)) return;
  const Extent extent = ExtentOf(model, count);
  if (IsOne(extent)) return;
  RefuseAccess(sink, node, [&] {
    return "its count is " + ShapeText(model, extent) + " elements of " + NameText(model, count) + "; " + what +
           " one integer; name a buffer of one element, or one element of a larger buffer, with ps::Slice({i}, {1})";
  });
}

void DeclareCount(const DeclarationSink& sink, const Name& output, BufferHandle<void> count, const Box& box,
                  const std::shared_ptr<const StateRecord>& state, CountDecl& decl) {
  const Model& model = sink.model();
  const AccessOf<void, AccessMode::kRead> access{.buffer = count, .box = box, .state = state};
  const AccessTo to(access);  // which points into it
  const auto refuse = [&](auto text) {
    sink.Visit(
        [&](auto& into) { into.Refuse([&] { return graph::Prefix(model, "buffer", output) + ": " + text(); }); });
  };
  if (!IsOfGraph(model, to)) {
    return refuse([] {
      return std::string(
          "its count is no buffer of this graph; a handle is good in the graph that made it; declare the "
          "count in this graph");
    });
  }
  if (const Extent extent = ExtentOf(model, to); !IsOne(extent)) {
    return refuse([&] {
      return "its count is " + ShapeText(model, extent) + " elements of " + NameText(model, to) +
             "; it is one integer; name a buffer of one element, or one element of a larger buffer, with "
             "ps::Slice({i}, {1})";
    });
  }
  decl.buffer = state != nullptr ? sink.Visit([&](auto& into) { return into.State(state); }) : count.index();
  decl.box = box;
}

void CheckSameShape(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& from,
                    const AccessTo& to) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, from) || !IsOfGraph(model, to)) return;
  const Extent taken = ExtentOf(model, from), given = ExtentOf(model, to);
  if (!IsExtent(taken) || !IsExtent(given) || taken == given) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + ShapeText(model, taken) + " elements of " + NameText(model, from) + " and writes " +
           ShapeText(model, given) + " of " + NameText(model, to) + "; " + what +
           " reads and writes boxes of one shape; declare both with the same constants and parameters";
  });
}

void CheckRoom(const DeclarationSink& sink, const Name& node, const char* why, const AccessTo& from,
               const AccessTo& to) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, from) || !IsOfGraph(model, to)) return;
  const Extent taken = ExtentOf(model, from), given = ExtentOf(model, to);
  if (!IsExtent(taken) || !IsExtent(given)) return;
  const Dim& room = given.dims[0];
  const bool has_room = taken == given || (room.is_constant() && room.value >= MostElements(model, taken));
  if (taken.rank == 1 && given.rank == 1 && has_room) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + ShapeText(model, taken) + " elements of " + NameText(model, from) + " and may write as many to " +
           ShapeText(model, given) + " of " + NameText(model, to) + "; " + why +
           "; read one dimension, and write to one of at least as many elements";
  });
}

void CheckMaximum(const DeclarationSink& sink, const Name& node, const Dim& max, const AccessTo& from) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, from)) return;
  const Extent taken = ExtentOf(model, from);
  if (!IsExtent(taken) || taken == Extent(max)) return;
  RefuseAccess(sink, node, [&] {
    return "its CountOf has a maximum of " + ShapeText(model, Extent(max)) + " and it reads " +
           ShapeText(model, taken) + " elements of " + NameText(model, from) +
           "; a count is of the first elements of one dimension; name that dimension as its maximum";
  });
}

void CheckInPlace(const DeclarationSink& sink, const Name& node, const AccessTo& from, const AccessTo& to,
                  bool may_be_same) {
  const Model& model = sink.model();
  if (!MayBeSame(model, from, to)) return;
  const bool is_same = from.buffer == to.buffer && *from.box == *to.box;
  if ((is_same && may_be_same) || AreApart(model, from, to)) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + NameText(model, from) + " and writes " + NameText(model, to) +
           ", which may be the same memory; it writes " +
           (may_be_same
                ? "the elements that it reads, or memory that it does not read; name the same box, or another buffer"
                : "memory that it does not read; name another buffer");
  });
}

void CheckApart(const DeclarationSink& sink, const Name& node, const AccessTo& a, const AccessTo& b) {
  const Model& model = sink.model();
  if (!MayBeSame(model, a, b) || AreApart(model, a, b)) return;
  RefuseAccess(sink, node, [&] {
    return "writes " + NameText(model, a) + " and " + NameText(model, b) +
           ", which may be the same memory; name other memory for one of them";
  });
}

void CheckPairs(const DeclarationSink& sink, const Name& node, const AccessTo& keys, const AccessTo& values) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, keys) || !IsOfGraph(model, values)) return;
  const Extent taken = ExtentOf(model, keys), with = ExtentOf(model, values);
  if (!IsExtent(taken) || !IsExtent(with) || taken == with) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + ShapeText(model, taken) + " keys of " + NameText(model, keys) + " and " + ShapeText(model, with) +
           " values of " + NameText(model, values) +
           "; there is a value for each key; declare both with the same constants and parameters";
  });
}

void CheckRows(const DeclarationSink& sink, const Name& node, const AccessTo& from, const AccessTo& to) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, from) || !IsOfGraph(model, to)) return;
  const Extent taken = ExtentOf(model, from), given = ExtentOf(model, to);
  if (!IsExtent(taken) || !IsExtent(given)) return;
  bool fits = taken.rank >= 2 && given.rank == taken.rank - 1;
  for (int i = 0; fits && i < given.rank; ++i) {
    fits = given.dims[static_cast<size_t>(i)] == taken.dims[static_cast<size_t>(i)];
  }
  if (fits) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + ShapeText(model, taken) + " elements of " + NameText(model, from) + " and writes " +
           ShapeText(model, given) + " of " + NameText(model, to) +
           (taken.rank == 1 ? "; a ReduceRows reads rows of two or three dimensions; name Reduce for one dimension"
                            : "; a ReduceRows writes one element for each row; name a buffer or a box of the same "
                              "extent without its last dimension");
  });
}

void CheckCounts(const DeclarationSink& sink, const Name& node, const AccessTo& counts) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, counts)) return;
  const Extent given = ExtentOf(model, counts);
  if (!IsExtent(given) || given.rank == 1) return;
  RefuseAccess(sink, node, [&] {
    return "writes " + ShapeText(model, given) + " counts to " + NameText(model, counts) +
           "; the bins of a Histogram have one dimension; name a buffer or a box of one";
  });
}

void CheckMost(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& from, uint64_t most) {
  const Model& model = sink.model();
  if (!IsOfGraph(model, from)) return;
  const Extent taken = ExtentOf(model, from);
  if (!IsExtent(taken) || static_cast<uint64_t>(MostElements(model, taken)) <= most) return;
  RefuseAccess(sink, node, [&] {
    return "reads " + ShapeText(model, taken) + " elements of " + NameText(model, from) + ", and " + what +
           " is for at most " + std::to_string(most) + "; name a larger type, or read fewer elements";
  });
}

void RefuseNoInitial(const DeclarationSink& sink, const Name& node) {
  RefuseAccess(sink, node, [] {
    return std::string(
        "begins with the identity of its operation, and the operation has none; name the initial value after the "
        "operation, or give it an Identity");
  });
}

MostRows MostRowsOf(const Model& model, const Extent& extent) {
  if (!IsExtent(extent) || MostElements(model, extent) <= 1) return {1, 1};
  const int64_t width = MostElements(model, Extent(extent.dims[static_cast<size_t>(extent.rank) - 1]));
  const int64_t rows = extent.rank == 1   ? 1
                       : extent.rank == 2 ? MostElements(model, Extent(extent.dims[0]))
                                          : MostElements(model, Extent(extent.dims[0], extent.dims[1]));
  return {rows, width};
}

}  // namespace penstock::detail
