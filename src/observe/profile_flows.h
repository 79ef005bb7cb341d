// The arrows that a viewer draws between the slices of a profile:
//   "launch"  from a launch to what its run does first;
//   "data"    from an upload, or a copy on or between devices, to the first node that follows it by the plan;
//   "end"     from what a run does last to the end of the run.
//
// An arrow never goes back in time: the clocks of devices agree up to the time of a poll (trace.h), and one that would
// is left out. Of the nodes that follow a copy only the first 64 in the plan are looked for, so n slices take n log n.
//
// Threads: pure functions.
#pragma once

#include "src/observe/chrome_writer.h"
#include "src/observe/profile_tracks.h"

namespace penstock::observe {

void WriteFlows(const ProfileTracks& tracks, ChromeWriter& to);

}  // namespace penstock::observe
