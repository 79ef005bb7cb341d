#include "src/cli/device_list.h"

#include <charconv>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/analysis/over_devices.h"

namespace penstock::cli {
namespace {

// 0: it is no number of devices.
int32_t CountOf(std::string_view text) {
  int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_count = error == std::errc() && end == text.data() + text.size();
  return is_count && count >= 1 && count <= analysis::kMostDevices ? count : 0;
}

// Whether it is one number, or a range.
bool AddCounts(std::string_view text, std::set<int32_t>& to) {
  const size_t dots = text.find("..");
  const int32_t first = CountOf(text.substr(0, dots));
  const int32_t last = dots == std::string_view::npos ? first : CountOf(text.substr(dots + 2));
  if (first == 0 || last < first) return false;
  for (int32_t count = first; count < last; count *= 2) to.insert(count);
  to.insert(last);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ParseDeviceList(const std::string& text) {
  std::set<int32_t> counts;
  std::string_view rest = text;
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = rest.find(',');
    if (!AddCounts(rest.substr(0, comma), counts)) {
      return absl::InvalidArgumentError(absl::StrCat("--devices ", graph::OneLine(text),
                                                     " is not a list of numbers from 1 to ", analysis::kMostDevices,
                                                     " such as 1,2,4, or a range such as 1..1024"));
    }
    if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
  }
  return std::vector<int32_t>(counts.begin(), counts.end());
}

}  // namespace penstock::cli
