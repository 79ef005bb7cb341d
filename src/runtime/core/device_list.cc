// The parser of device lists. See device_list.h.
#include "src/runtime/core/device_list.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"

namespace penstock::runtime {
namespace {

using base::Av;

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The pieces between separators; an empty text has one empty piece.
std::vector<std::string_view> PartitionAt(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t end = text.find(separator);
    pieces.push_back(Trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<DeviceRequest>> Parse() {
    std::vector<DeviceRequest> requests;
    for (const std::string_view part : PartitionAt(text_, ';')) {
      PENSTOCK_ASSIGN_OR_RETURN(DeviceRequest request, ParsePart(part));
      requests.push_back(std::move(request));
    }
    return requests;
  }

 private:
  absl::StatusOr<DeviceRequest> ParsePart(std::string_view part) {
    if (part.empty()) return Wrong(part, "a part is empty");
    const size_t colon = part.find(':');
    const std::string_view kind = Trimmed(part.substr(0, colon));
    const bool has_spec = colon != std::string_view::npos;
    const std::string_view spec = has_spec ? part.substr(colon + 1) : std::string_view();
    if (kind == "cuda") return ParseCuda(part, has_spec, spec);
    if (kind == "host") return ParseHost(part, has_spec, spec);
    return Wrong(part, absl::StrCat("there is no kind of device called '", Av(kind), "'"));
  }

  absl::StatusOr<DeviceRequest> ParseCuda(std::string_view part, bool has_spec, std::string_view spec) {
    // A part means one driver, and only devices of the same driver can work in one graph.
    if (std::exchange(cuda_seen_, true)) {
      return Wrong(part, "cuda is named twice; give its numbers in one part, as in cuda:0,2");
    }
    DeviceRequest request{.cuda = true, .all = !has_spec};
    if (request.all) return request;
    for (const std::string_view piece : PartitionAt(spec, ',')) {
      PENSTOCK_ASSIGN_OR_RETURN(const int ordinal, Number(part, piece));
      if (ordinal >= kMaxListedDevices) return TooLarge(part, ordinal, kMaxListedDevices - 1);
      if (std::find(request.ordinals.begin(), request.ordinals.end(), ordinal) != request.ordinals.end()) {
        return Wrong(part, absl::StrCat("CUDA device ", ordinal, " is named twice"));
      }
      request.ordinals.push_back(ordinal);
    }
    return request;
  }

  absl::StatusOr<DeviceRequest> ParseHost(std::string_view part, bool has_spec, std::string_view spec) {
    if (std::exchange(host_seen_, true)) return Wrong(part, "host is named twice; give one count, as in host:2");
    if (!has_spec) return DeviceRequest{.host_count = 1};
    PENSTOCK_ASSIGN_OR_RETURN(const int count, Number(part, Trimmed(spec)));
    if (count == 0) return Wrong(part, "there must be at least one host device");
    if (count > kMaxListedDevices) return TooLarge(part, count, kMaxListedDevices);
    return DeviceRequest{.host_count = count};
  }

  // A non-negative number; one that does not fit becomes the largest int, which every caller refuses.
  absl::StatusOr<int> Number(std::string_view part, std::string_view piece) {
    if (piece.empty()) return Wrong(part, "a number is missing");
    int value = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
    if (end != piece.data() + piece.size() || error == std::errc::invalid_argument) {
      return Wrong(part, absl::StrCat("'", Av(piece), "' is not a number"));
    }
    if (piece.front() == '-') return Wrong(part, absl::StrCat("'", Av(piece), "' is negative"));
    return error == std::errc::result_out_of_range ? std::numeric_limits<int>::max() : value;
  }

  absl::Status TooLarge(std::string_view part, int value, int most) {
    const std::string number = value == std::numeric_limits<int>::max() ? "the number" : absl::StrCat(value);
    return Wrong(part, absl::StrCat(number, " is too large; the most is ", most));
  }

  absl::Status Wrong(std::string_view part, std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("device list '", Av(text_), "', part '", Av(part), "': ", Av(why),
                     "; write cuda, cuda:0,2, host or host:4, or several of them joined by ';'"));
  }

  std::string_view text_;
  bool cuda_seen_ = false, host_seen_ = false;
};

}  // namespace

absl::StatusOr<std::vector<DeviceRequest>> ParseDeviceList(std::string_view text) { return Parser(text).Parse(); }

}  // namespace penstock::runtime
