#include "src/analysis/text.h"

#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/status.h"

namespace penstock::analysis {

std::string NumberText(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return absl::StrFormat("%.3g", value);
  return absl::StrFormat("%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
}

std::string PercentText(double share, int digits) { return absl::StrFormat("%.*f %%", digits, share * 100); }

std::string TimeText(double us) {
  const double size = std::abs(us);
  if (size < 999.5) return absl::StrCat(NumberText(us), " us");
  if (size < 999.5e3) return absl::StrCat(NumberText(us / 1e3), " ms");
  return absl::StrCat(NumberText(us / 1e6), " s");
}

// A whole number of a unit is written without decimals.
std::string SizeText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t u = 0;
  for (; size >= 1024 && u + 1 < std::size(kUnits); ++u) size /= 1024;
  const bool is_whole = size == std::floor(size);
  return absl::StrCat(is_whole ? absl::StrFormat("%.0f", size) : NumberText(size), " ", kUnits[u]);
}

std::string RateText(double gigabytes_per_second) { return absl::StrCat(NumberText(gigabytes_per_second), " GB/s"); }

std::string FlopsText(double operations) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  size_t p = 0;
  for (; operations >= 999.5 && p + 1 < std::size(kPrefixes); ++p) operations /= 1000;
  return absl::StrCat(NumberText(operations), " ", kPrefixes[p], "FLOP");
}

std::string FlopRateText(double gigaflops_per_second) {
  return absl::StrCat(FlopsText(gigaflops_per_second * 1e9), "/s");
}

std::string CountText(int64_t count, std::string_view one) {
  return absl::StrCat(count, " ", base::Av(one), count == 1 ? "" : "s");
}

std::string TimesText(int64_t count) { return count == 1 ? "once" : absl::StrCat(count, " times"); }

}  // namespace penstock::analysis
