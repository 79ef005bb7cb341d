#include "src/runtime/core/polling_cores.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/base/environment.h"

namespace penstock::runtime {

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
