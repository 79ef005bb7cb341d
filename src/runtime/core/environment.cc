#include "src/runtime/core/environment.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/runtime/core/tuning.h"

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
                                      "' is no number of bytes; write digits, followed by K, M or G for KiB, MiB "
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

absl::StatusOr<int> SubmissionThreadsOf(int option) {
  const std::optional<std::string> variable = base::Variable("PENSTOCK_SUBMISSION_THREADS");
  if (!variable) return std::min(option, tuning::kMostThreads);
  const std::string_view text(*variable);
  int number = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < -1) {
    return absl::InvalidArgumentError("PENSTOCK_SUBMISSION_THREADS is '" + std::string(text) +
                                      "'; it must be a number of threads a device, 0 for none, or -1 to leave it open");
  }
  return std::min(number, tuning::kMostThreads);
}

int DefaultSubmissionThreads(int cores, int devices) {
  if (devices == 0) return 0;
  return std::clamp((cores - tuning::kOtherCores) / devices, 0, tuning::kMostThreadsByDefault);
}

const char* PollingCoresSource() {
  return base::Variable("PENSTOCK_POLLING_CORES") ? "PENSTOCK_POLLING_CORES" : "RuntimeOptions::polling_cores";
}

absl::StatusOr<std::vector<int>> PollingCoresOf(std::vector<int> option) {
  if (const std::optional<std::string> env = base::Variable("PENSTOCK_POLLING_CORES")) {
    option.clear();
    for (const absl::string_view part : absl::StrSplit(*env, ',')) {
      if (!absl::SimpleAtoi(part, &option.emplace_back())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "PENSTOCK_POLLING_CORES is '", *env, "'; it must be numbers of cores with commas between them, as in 2,3"));
      }
    }
  }
  for (const int core : option) {
    if (core < 0 || std::count(option.begin(), option.end(), core) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(PollingCoresSource(), " names ", core,
                                                     core < 0 ? "; cores count from 0" : " twice; a core polls once"));
    }
  }
  return option;
}

}  // namespace penstock::runtime
