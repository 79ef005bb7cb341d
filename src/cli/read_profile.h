// Reads profiles: what Profile::Write has written, or somebody who means harm.
//
// A profile that is returned makes sense: each index in it names something that exists, or is -1 where that is allowed;
// nodes follow each other without a cycle; numbers are finite, counts and bytes at least 0; the numbers of executables
// differ. Spans may end before they begin, and those of graphs that are lost may name any node. Members, and columns of
// spans, that this version does not know are ignored. Spans of a kind that it does not know are left out and count as
// lost: what they would mean is unknown, and as work of another kind they would make shares wrong.
//
// Reading takes memory of at most 64 MiB and about 100 times the size of the file, a few times of an honest one.
//
// Threads: free functions.
// Errors:  each begins with "profile 'NAME'", then says where in the JSON something is not as it should be. NotFound
// and
//          the like: the file cannot be read. InvalidArgument: it is no profile. DataLoss: it is a damaged one.
//          Unimplemented: its version is newer. ResourceExhausted: it is larger than 1 GiB, or would be in memory.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/profile.h"

namespace penstock::cli {

// A file, or something else that ends, such as a pipe.
absl::StatusOr<Profile> ReadProfile(const std::string& path);
// `name`: of what has this text, for errors.
absl::StatusOr<Profile> ParseProfile(std::string_view json, std::string_view name);

}  // namespace penstock::cli
