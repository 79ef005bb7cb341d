#include "src/driver/checked/stream_book.h"

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {

Stream StreamBook::Add(Stream inner, int device) {
  streams_[++made_streams_] = {.inner = inner, .device = device, .after = {}};
  return Stream{made_streams_};
}

Event StreamBook::Add(Event inner, int device, bool timing) {
  events_[++made_events_] = {.inner = inner, .device = device, .timing = timing, .covers = {}};
  return Event{made_events_};
}

StreamState* StreamBook::Find(Stream stream) {
  const auto at = streams_.find(stream.bits);
  return at == streams_.end() ? nullptr : &at->second;
}
const StreamState* StreamBook::Find(Stream stream) const { return const_cast<StreamBook*>(this)->Find(stream); }

EventState* StreamBook::Find(Event event) {
  const auto at = events_.find(event.bits);
  return at == events_.end() ? nullptr : &at->second;
}

void StreamBook::Remove(Stream stream) {
  streams_.erase(stream.bits);
  over_.Forget(stream.bits);
}

void StreamBook::Record(EventState& event, Stream stream, const StreamState& state) {
  event.recorded = true;
  event.seen_complete = false;
  event.covers = state.after;
  event.covers.See(stream.bits, state.operations);
}

void StreamBook::Completed(EventState& event, const Clock& covers) {
  event.seen_complete = true;
  over_.Merge(covers);
}

// A stream that is gone was found idle, or reported, when it went.
bool StreamBook::IsOver(uint64_t stream, uint64_t operation) const {
  return Find(Stream{stream}) == nullptr || over_.Covers(stream, operation);
}

std::string StreamBook::WhyNot(const char* what, uint64_t bits, uint64_t made) {
  if (bits == 0) return absl::StrCat("a null ", what);
  if (bits <= made) return absl::StrCat(what, " ", bits, " was destroyed before");
  return absl::StrCat(what, " ", bits, " was never made by this driver");
}

}  // namespace penstock::driver::checked
