// StreamBook: the streams and events a checked driver handed out, and the order of their work.
//
// Handles are numbers never used twice, so one that was destroyed is known as such even where the driver below gives
// its address to the next. Order is kept by clocks: of each stream what it comes after, of each event what its last
// record covers, and of the host what it has seen complete.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/driver/checked/clock.h"
#include "src/driver/driver.h"

namespace penstock::driver::checked {

struct StreamState {
  Stream inner;
  int device = 0;
  uint64_t operations = 0;  // submitted
  Clock after;              // what its next operation comes after
};

struct EventState {
  Event inner;
  int device = 0;
  bool timing = false;
  bool recorded = false;
  bool seen_complete = false;  // the last record
  Clock covers;                // of the last record
};

class StreamBook {
 public:
  Stream Add(Stream inner, int device);
  Event Add(Event inner, int device, bool timing);
  // Null where the handle is not alive.
  StreamState* Find(Stream stream);
  EventState* Find(Event event);
  const StreamState* Find(Stream stream) const;
  void Remove(Stream stream);
  void Remove(Event event) { events_.erase(event.bits); }

  void Record(EventState& event, Stream stream, const StreamState& state);
  void Wait(StreamState& stream, const EventState& event) { stream.after.Merge(event.covers); }
  void Completed(EventState& event, const Clock& covers);
  // Whether the host has seen the operation end.
  bool IsOver(uint64_t stream, uint64_t operation) const;

  // "stream 3 was destroyed", "stream 9 was never made by this driver".
  std::string WhyNot(Stream stream) const { return WhyNot("stream", stream.bits, made_streams_); }
  std::string WhyNot(Event event) const { return WhyNot("event", event.bits, made_events_); }
  const std::map<uint64_t, StreamState>& streams() const { return streams_; }

 private:
  static std::string WhyNot(const char* what, uint64_t bits, uint64_t made);

  std::map<uint64_t, StreamState> streams_;
  std::map<uint64_t, EventState> events_;
  uint64_t made_streams_ = 0, made_events_ = 0;
  Clock over_;  // what the host has seen
};

}  // namespace penstock::driver::checked
