#include "graph/declare/host_check_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "penstock/detail/arguments.h"
#include "penstock/detail/scan_tree.h"

namespace penstock::graph {
namespace {

constexpr int kHostPoison = 0xa5;  // where the host code starts
constexpr int kNodePoison = 0x5a;  // where a node starts that writes only some elements

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

bool IsPoison(const std::byte* at, uint32_t size) {
  return std::all_of(at, at + size, [](std::byte b) { return b == std::byte{kHostPoison}; });
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

void Poison(std::byte* data, const View<char>& view, uint32_t element_bytes, int pattern) {
  const size_t row_bytes = static_cast<size_t>(view.width) * element_bytes;
  ForRows(view, element_bytes, [&](int64_t row) { std::memset(data + row, pattern, row_bytes); });
}

// Elements that both left as they were when they started, from different contents, were not written.
absl::Status Compare(const HostCheck& check, const HostCheck::Output& output, void* const* argv) {
  const std::byte *mine = DataOf(argv, output.mine), *actual = DataOf(argv, output.actual);
  const std::byte* before = output.before == 0 ? nullptr : DataOf(argv, output.before);
  const View<char>& view = ViewOf(argv, output.actual);
  const uint32_t size = output.type.size;
  int64_t elements = 0, first = -1, first_at = 0, differ = 0;
  ForRows(view, size, [&](int64_t row) {
    for (int64_t at = row; at < row + view.width * size; at += size, ++elements) {
      if (Equal(actual + at, mine + at, output.type, check.tolerance)) continue;
      if (before != nullptr && IsPoison(mine + at, size) && std::memcmp(actual + at, before + at, size) == 0) continue;
      if (differ++ > 0) continue;
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

absl::Status RunHostCode(const HostCheck& check, void* const* argv) {
  if (check.code.range == nullptr) return check.code.call_fallback(check.code.fallback.get(), argv);
  const auto& range = *static_cast<const detail::Range*>(argv[0]);
  if (check.level > 0) {
    check.code.range(argv, 0, detail::LeavesOfLevel(range, check.level, check.by_rows));
    return absl::OkStatus();
  }
  if (check.rank == detail::kTaskRank) {
    check.code.range(argv, 0, 1);
    return absl::OkStatus();
  }
  const int64_t rows = check.rank == 1 ? range.width : range.depth * range.height;
  if (range.width > 0) check.code.range(argv, 0, rows);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunHostCheck(void* callable, LaunchContext*, void* const* argv) {
  const auto& check = *static_cast<const HostCheck*>(callable);
  for (const HostCheck::Output& output : check.outputs) {
    if (output.poison) Poison(DataOf(argv, output.mine), ViewOf(argv, output.actual), output.type.size, kHostPoison);
  }
  absl::Status status = RunHostCode(check, argv);
  for (size_t i = 0; status.ok() && i < check.outputs.size(); ++i) status = Compare(check, check.outputs[i], argv);
  return status;
}

absl::Status RunHostCheckKeep(void* callable, LaunchContext*, void* const* argv) {
  const auto& [size, poison] = *static_cast<const HostCheckKeep*>(callable);
  const View<char>& view = ViewOf(argv, 0);
  if (poison) Poison(DataOf(argv, 0), view, size, kNodePoison);
  const size_t row_bytes = static_cast<size_t>(view.width) * size;
  ForRows(view, size, [&](int64_t row) { std::memcpy(DataOf(argv, 1) + row, DataOf(argv, 0) + row, row_bytes); });
  return absl::OkStatus();
}

}  // namespace penstock::graph
