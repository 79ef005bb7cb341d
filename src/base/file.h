// Writes text to a file as users expect of any program: a regular file is replaced whole or not at all, and keeps its
// mode, owner and names; a device, pipe or socket is written to and stays what it is.
//
// A symbolic link is followed, even if it leads to nothing yet, and stays. A regular file is replaced by a new one made
// beside it. If the system does not let the new file take the old one's place or owner (the directory is not writable,
// or the file is mounted, belongs to another user, or has several names), the text is written into the old file, which
// a full disk leaves incomplete. /dev/stdout and other names of open descriptors are written through the descriptor.
//
// Threads:   free function. It blocks SIGPIPE and SIGXFSZ in the calling thread while it writes, so a closed reader or
//            a file size limit is an error and does not end the process. Writing to a pipe waits for its reader.
// Errors:    from errno, with `what`, the path and the system's text. ACLs and other extended attributes are not kept.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::base {

// `what` begins the message, as in "trace file".
absl::Status WriteFile(std::string_view what, const std::string& path, std::string_view text);

// Whether WriteFile could begin now, as far as that is known without it: the path may be looked at, is no directory,
// and may be written, or its directory may. For what takes long before there is something to write. Errors: as
// WriteFile.
absl::Status CheckWritable(std::string_view what, const std::string& path);

}  // namespace penstock::base
