// Wording and quoting.
#include "errors.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace photos {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return absl::StatusCode::kResourceExhausted;
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR: return absl::StatusCode::kInvalidArgument;
    default: return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

std::string Quoted(const std::string& name) { return absl::StrCat("'", absl::Utf8SafeCEscape(name), "'"); }

absl::Status Error(absl::StatusCode code, const std::string& what, const std::string& reason, const std::string& todo) {
  return absl::Status(code, absl::StrCat(what, "; ", reason, "; ", todo));
}

absl::Status SystemError(int error, const std::string& what, const std::string& todo) {
  // strerror is not safe to call from several threads; this is.
  return Error(CodeOf(error), what, std::generic_category().message(error), todo);
}

}  // namespace photos
