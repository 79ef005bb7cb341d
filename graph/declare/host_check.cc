#include "graph/declare/host_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "penstock/detail/declaration_recorder.h"

namespace penstock::graph {
namespace {

constexpr int kPoison = 0xa5;

// The callable of a check node.
struct Output {
  std::string buffer;
  TypeInfo type;
  size_t mine, actual;  // argument numbers: what the host code writes here, and what the node has written
  bool poison;          // only written: nothing was copied aside
};
struct Check {
  NodeCode code;
  int rank = 0;  // for a ParallelFor
  double tolerance = 0;
  std::vector<Output> outputs;
};

template <class T>
T As(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double FloatOf(const std::byte* at, uint32_t size) {
  return size == sizeof(float) ? static_cast<double>(As<float>(at)) : As<double>(at);
}

int64_t IntegerOf(const std::byte* at, uint32_t size) {
  switch (size) {
    case 1: return As<int8_t>(at);
    case 2: return As<int16_t>(at);
    case 4: return As<int32_t>(at);
    default: return As<int64_t>(at);
  }
}

bool Equal(const std::byte* a, const std::byte* b, const TypeInfo& type, double tolerance) {
  if (std::memcmp(a, b, type.size) == 0) return true;
  if (type.number != NumberKind::kFloat || tolerance <= 0) return false;
  const double x = FloatOf(a, type.size), y = FloatOf(b, type.size);
  return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
}

// "4 (04 00 00 00)", or only the bytes if it is not a number.
std::string Text(const std::byte* at, const TypeInfo& type) {
  std::string bytes;
  for (uint32_t i = 0; i < std::min<uint32_t>(type.size, 16); ++i) {
    char two[4];
    std::snprintf(two, sizeof(two), i > 0 ? " %02x" : "%02x", static_cast<unsigned>(at[i]));
    bytes += two;
  }
  if (type.size > 16) bytes += " ...";
  const unsigned unused = 64 - 8 * std::min<uint32_t>(type.size, 8);
  char number[32];
  switch (type.number) {
    case NumberKind::kNone: return bytes;
    case NumberKind::kFloat: std::snprintf(number, sizeof(number), "%.9g", FloatOf(at, type.size)); break;
    case NumberKind::kSigned:
      std::snprintf(number, sizeof(number), "%lld", static_cast<long long>(IntegerOf(at, type.size)));
      break;
    case NumberKind::kUnsigned:
      std::snprintf(number, sizeof(number), "%llu",
                    static_cast<unsigned long long>(IntegerOf(at, type.size)) << unused >> unused);
      break;
  }
  return std::string(number) + " (" + bytes + ")";
}

std::byte* DataOf(void* const* argv, size_t arg) { return *static_cast<std::byte**>(argv[arg]); }

const View<char>& ViewOf(void* const* argv, size_t arg) { return *static_cast<const View<char>*>(argv[arg]); }

// Calls f(bytes from the first element on) for each row. A copy has the layout of its original.
template <class F>
void ForRows(const View<char>& view, uint32_t element_bytes, F f) {
  if (view.width == 0) return;
  for (int64_t z = 0; z < view.depth; ++z) {
    for (int64_t y = 0; y < view.height; ++y) f((z * view.slice + y * view.pitch) * element_bytes);
  }
}

absl::Status Compare(const Check& check, const Output& output, void* const* argv) {
  const std::byte *mine = DataOf(argv, output.mine), *actual = DataOf(argv, output.actual);
  const View<char>& view = ViewOf(argv, output.actual);
  const uint32_t size = output.type.size;
  int64_t elements = 0, first = -1, first_at = 0, differ = 0;
  ForRows(view, size, [&](int64_t row) {
    for (int64_t at = row; at < row + view.width * size; at += size, ++elements) {
      if (Equal(actual + at, mine + at, output.type, check.tolerance) || differ++ > 0) continue;
      first = elements;
      first_at = at;
    }
  });
  if (differ == 0) return absl::OkStatus();
  return absl::DataLossError(
      "the node and its host code differ in buffer '" + output.buffer + "'; element " + std::to_string(first) + " is " +
      Text(actual + first_at, output.type) + " by the node and " + Text(mine + first_at, output.type) +
      " by the host code, " + std::to_string(differ) + " of " + std::to_string(elements) +
      " elements differ; correct one of them" +
      (output.type.number == NumberKind::kFloat ? ", or allow CompileOptions::host_tolerance" : ""));
}

absl::Status RunHostCode(const Check& check, void* const* argv) {
  if (check.code.range == nullptr) return check.code.call_fallback(check.code.fallback.get(), argv);
  const auto& range = *static_cast<const detail::Range*>(argv[0]);
  const int64_t rows = check.rank == 1 ? range.width : range.depth * range.height;
  if (range.width > 0) check.code.range(argv, 0, rows);
  return absl::OkStatus();
}

absl::Status RunCheck(void* callable, LaunchContext*, void* const* argv) {
  const auto& check = *static_cast<const Check*>(callable);
  for (const Output& output : check.outputs) {
    if (!output.poison) continue;
    const View<char>& view = ViewOf(argv, output.actual);
    const size_t row_bytes = static_cast<size_t>(view.width) * output.type.size;
    ForRows(view, output.type.size,
            [&](int64_t row) { std::memset(DataOf(argv, output.mine) + row, kPoison, row_bytes); });
  }
  absl::Status status = RunHostCode(check, argv);
  for (size_t i = 0; status.ok() && i < check.outputs.size(); ++i) status = Compare(check, check.outputs[i], argv);
  return status;
}

// The callable of a node that copies aside: copies argument 0 to argument 1, of one element type.
absl::Status RunKeep(void* callable, LaunchContext*, void* const* argv) {
  const uint32_t size = static_cast<const TypeInfo*>(callable)->size;
  const View<char>& view = ViewOf(argv, 0);
  const size_t row_bytes = static_cast<size_t>(view.width) * size;
  ForRows(view, size, [&](int64_t row) { std::memcpy(DataOf(argv, 1) + row, DataOf(argv, 0) + row, row_bytes); });
  return absl::OkStatus();
}

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
    for (const NodeDecl& node : model.nodes) {
      for (const AccessDecl& access : node.accesses) {
        if (access.unordered) unordered_[BaseOf(model, access.buffer)] = true;
      }
    }
  }

  Model Run() {
    std::vector<int32_t> moved;  // old node -> new one
    for (const NodeDecl& node : in_.nodes) {
      const std::string why = HasHostCode(node) ? WhyNot(node) : "it has no host code";
      std::vector<int32_t> aside;
      if (why.empty()) aside = CopyAside(node);
      moved.push_back(static_cast<int32_t>(out_.nodes.size()));
      out_.nodes.push_back(node);
      if (why.empty()) {
        AddCheck(node, aside);
      } else if (HasHostCode(node)) {
        unchecked_.push_back(Prefix(in_, "node", node.name) + ": not checked against its host code: " + why);
      }
    }
    for (NodeDecl& node : out_.nodes) {
      for (DeclId& other : node.after) other = moved[other];
    }
    return std::move(out_);
  }

 private:
  const BufferDecl& Buffer(const AccessDecl& access) const { return in_.buffers[access.buffer]; }

  // Empty if the node can be checked.
  std::string WhyNot(const NodeDecl& node) const {
    std::vector<int32_t> seen;
    bool written = false;
    for (const AccessDecl& access : node.accesses) {
      const std::string buffer = "'" + std::string(Buffer(access).name.view()) + "'";
      if (Buffer(access).is_alias) return buffer + " is an alias";
      if (unordered_[access.buffer]) return "an access to " + buffer + " is Unordered";
      if (std::count(seen.begin(), seen.end(), access.buffer) > 0) return "it accesses " + buffer + " twice";
      seen.push_back(access.buffer);
      written = written || access.mode != AccessMode::kRead;
    }
    if (!written) return "it writes no buffer";
    return "";
  }

  Name NameFor(const char* what, const NodeDecl& node, const std::string& buffer = "") const {
    const SourceLine& source = node.name.source();
    const std::string tail = buffer.empty() ? "" : " " + buffer;
    return Name(std::string(what) + " " + std::string(node.name.view()) + tail, source.file, source.line);
  }

  // A pinned buffer of the same shape for each access that writes, filled if the node also reads it; otherwise -1. Of
  // an access to a part, only that part is used.
  std::vector<int32_t> CopyAside(const NodeDecl& node) {
    std::vector<int32_t> aside;
    for (const AccessDecl& access : node.accesses) {
      aside.push_back(-1);
      if (access.mode == AccessMode::kRead) continue;
      const BufferDecl& of = Buffer(access);
      aside.back() = static_cast<int32_t>(out_.buffers.size());
      out_.buffers.push_back({NameFor("host fallback of", node, std::string(of.name.view())), of.type,
                              BufferRole::kInternal, Where::kPinned, of.extent, of.pitch});
      if (access.mode == AccessMode::kWrite) continue;
      NodeDecl before(NameFor("keep", node, std::string(of.name.view())));
      before.kind = NodeKind::kHost;
      AddView(before, access, AccessMode::kRead, of.type);
      AddView(before, On(aside.back(), access), AccessMode::kWrite, of.type);
      before.code.callable = std::make_shared<TypeInfo>(of.type);
      before.code.call = &RunKeep;
      out_.nodes.push_back(std::move(before));
    }
    return aside;
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
  void AddCheck(const NodeDecl& node, const std::vector<int32_t>& aside) {
    NodeDecl check(NameFor("check", node));
    check.kind = NodeKind::kHost;
    check.extent = node.extent;
    check.args = node.args;
    check.arg_block = node.arg_block;
    auto callable = std::make_shared<Check>();
    callable->code = node.code;
    callable->rank = node.extent.rank;
    callable->tolerance = tolerance_;
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      check.accesses.push_back(aside[i] < 0 ? node.accesses[i] : On(aside[i], node.accesses[i]));
    }
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      if (aside[i] < 0) continue;
      const bool only_written = node.accesses[i].mode == AccessMode::kWrite;
      const BufferDecl& of = Buffer(node.accesses[i]);
      callable->outputs.push_back(
          {std::string(of.name.view()), of.type, ArgOf(node, i), check.args.size(), only_written});
      AddView(check, node.accesses[i], AccessMode::kRead, of.type);
    }
    check.code.callable = std::move(callable);
    check.code.call = &RunCheck;
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
  // Buffers with Unordered accesses: nodes After a node do not come after its check.
  std::vector<bool> unordered_;
};

}  // namespace

Model WithHostChecks(const Model& model, double tolerance, std::vector<std::string>& unchecked) {
  return Rewriter(model, tolerance, unchecked).Run();
}

}  // namespace penstock::graph
