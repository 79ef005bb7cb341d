// Whether what a profile says of itself agrees: the second half of reading one.
//
// Threads: pure function.
#pragma once

#include "absl/status/status.h"
#include "penstock/profile.h"

namespace penstock::cli {

// DataLoss, with the member ("graphs[2].nodes[17].lane"), if an index names nothing, nodes follow each other in
// a circle, or two graphs have one number.
absl::Status CheckProfile(const Profile& profile);

}  // namespace penstock::cli
