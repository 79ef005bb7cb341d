#include "src/cli/output_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "src/base/status.h"

namespace penstock::cli {

absl::Status CheckIsNotInput(std::string_view what, const std::string& path, const std::string& input) {
  std::error_code missing;
  if (!std::filesystem::equivalent(path, input, missing) || missing) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(base::Av(what), " '", graph::OneLine(path), "' is the file that is read; name another one"));
}

}  // namespace penstock::cli
