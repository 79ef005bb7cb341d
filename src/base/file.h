// Writes a text to a file as its user would expect of any program: a plain file is replaced whole or not at all and
// keeps its mode, its owner and its names; a device, a pipe or a socket is written to and stays what it is.
//
// A symbolic link is followed, also one that leads to nothing yet, and stays. A plain file is replaced by one beside
// it. Where the system does not let a new file take its place or its owner (the directory cannot be written, the file
// is mounted, belongs to somebody else, or has several names), the text is written into the old one, which is not whole
// if the disk is full. /dev/stdout and other names of open descriptors are written to through the descriptor.
//
// Threads: free function. It blocks SIGPIPE and SIGXFSZ in the calling thread while it writes, so that a reader that
//          has gone, or a limit on the size of files, is an error and ends no process. A pipe waits for its reader.
// Errors:  of errno, with `what`, the path and the system's text. ACLs and other extended attributes are not kept.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::base {

// `what` begins the message: "trace file".
absl::Status WriteFile(std::string_view what, const std::string& path, std::string_view text);

}  // namespace penstock::base
