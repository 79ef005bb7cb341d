// The counters that a viewer draws beside the slices of a profile:
//   "NAME: slots", of the host: how many slots of an executable are in use;
//   "pinned memory of runs", of the host: the pinned bytes of all slots in use;
//   "staged copies", of the host: how many copies of memory that is not pinned are under way;
//   "busy", of each device: which of its engines, upload, compute and download, have something to do.
//
// A counter has an event where it changes, so at most one for each begin and end of a span.
//
// Threads: pure functions.
#pragma once

#include "src/observe/chrome_writer.h"
#include "src/observe/profile_tracks.h"

namespace penstock::observe {

void WriteCounters(const ProfileTracks& tracks, ChromeWriter& to);

}  // namespace penstock::observe
