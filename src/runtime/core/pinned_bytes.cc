#include "src/runtime/core/pinned_bytes.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/status.h"

namespace penstock::runtime {
namespace {

// The number of bits that a suffix shifts by; -1 if it is no suffix.
int ShiftOf(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix == "K") return 10;
  if (suffix == "M") return 20;
  return suffix == "G" ? 30 : -1;
}

}  // namespace

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  uint64_t number = 0;
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  const int shift = ShiftOf(text.substr(static_cast<size_t>(rest - begin)));
  if (error != std::errc() || shift < 0 || number > uint64_t{std::numeric_limits<int64_t>::max()} >> shift) {
    return absl::InvalidArgumentError("'" + std::string(text) +
                                      "' is no number of bytes; write digits, with K, M or G behind them for KiB, MiB "
                                      "or GiB, such as 268435456, 256M or 2G; less than 2^63 bytes");
  }
  return static_cast<int64_t>(number << shift);
}

absl::StatusOr<int64_t> PinnedBudgetOf(int64_t option, const base::UsableMemory& usable) {
  int64_t bytes = option;
  if (const std::optional<std::string> variable = base::Variable("PENSTOCK_PINNED_BYTES")) {
    absl::StatusOr<int64_t> read = ParseBytes(*variable);
    if (!read.ok()) return base::Prefixed("PENSTOCK_PINNED_BYTES", read.status());
    bytes = *read;
  }
  return bytes > 0 ? std::min(bytes, usable.bytes) : usable.bytes / (usable.of_cgroup ? 4 : 2);
}

}  // namespace penstock::runtime
