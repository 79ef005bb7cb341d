#include "src/base/pace.h"

#include <memory>
#include <string>

#include "src/base/catch_all.h"
#include "src/base/user_code.h"

namespace penstock::base {
namespace {

constexpr std::chrono::milliseconds kBetweenTellings{100};

}  // namespace

ProgressFunction Paced(const ProgressFunction& of, const std::function<std::chrono::steady_clock::time_point()>& now) {
  if (!of) return nullptr;
  const auto last = std::make_shared<std::chrono::steady_clock::time_point>(now());  // of all copies
  return [of, now, last](const Progress& progress) {
    const std::chrono::steady_clock::time_point time = now();
    if (time - *last < kBetweenTellings) return true;
    const bool go_on = of(progress);
    *last = now();
    return go_on;
  };
}

absl::Status Tell(const ProgressFunction& to, std::string_view option, const Progress& progress) {
  if (!to) return absl::OkStatus();
  return CatchAll(option, [&]() -> absl::Status {
    const UserCodeScope scope;
    if (to(progress)) return absl::OkStatus();
    return absl::CancelledError(std::string(option) + " returned false; it was told of: " + std::string(progress.what));
  });
}

}  // namespace penstock::base
