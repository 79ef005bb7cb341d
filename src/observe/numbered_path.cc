#include "src/observe/numbered_path.h"

#include <unistd.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "src/base/environment.h"
#include "src/base/file.h"
#include "src/base/mutex.h"
#include "src/base/status.h"

namespace penstock::observe {
namespace {

// With the number of this process in place of %p, and a % in place of %%.
std::string WithProcess(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') {
      path += std::to_string(getpid());
    } else {
      path += pattern[i];
    }
    if (next == 'p' || next == '%') ++i;
  }
  return path;
}

absl::Status CheckPattern(const std::string& pattern) {
  for (size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + 2)) {
    const char next = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (next == 'p' || next == '%') continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", pattern, "' has a % that stands for nothing: %p is the process's number, %% a %"));
  }
  return base::CheckWritable("file", WithProcess(pattern));
}

}  // namespace

absl::StatusOr<std::string> PatternIn(const char* variable) {
  std::string pattern = base::Variable(variable).value_or("");
  if (pattern.empty()) return pattern;
  if (const absl::Status status = CheckPattern(pattern); !status.ok()) return base::Prefixed(variable, status);
  return pattern;
}

std::string NumberedPath(const std::string& pattern) {
  const std::string path = WithProcess(pattern);
  static base::Mutex mu;  // of `taken`
  static auto& taken = *new std::map<std::string, int>;
  base::MutexLock lock(mu);
  const int number = ++taken[path];
  return number == 1 ? path : path + "." + std::to_string(number);
}

}  // namespace penstock::observe
