#include "src/runtime/state/keyed_states.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {
namespace {

size_t BytesOf(const BufferDecl& decl) {
  size_t bytes = decl.type.size;
  for (int i = 0; i < decl.extent.rank; ++i) {
    bytes *= static_cast<size_t>(decl.extent.dims[i].value);
  }
  return bytes;
}

// The number of `places` for each device: at least one, since each device must be able to take a key.
std::vector<int> Divide(int places, std::span<const DeviceShare> devices) {
  double sum = 0;
  for (const DeviceShare& d : devices) sum += d.weight;
  std::vector<int> parts;
  for (const DeviceShare& d : devices) {
    parts.push_back(std::max(1, static_cast<int>(std::ceil(places * d.weight / sum))));
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::shared_ptr<KeyedStates>> KeyedStates::Create(const std::shared_ptr<RuntimeCore>& runtime,
                                                                 const Model& model,
                                                                 std::span<const DeviceShare> devices) {
  auto all = std::make_shared<KeyedStates>();
  all->prefix_ = graph::Prefix(model);
  int places = INT32_MAX;
  for (size_t b = 0; b < model.buffers.size(); ++b) {
    if (model.buffers[b].keys == 0) continue;
    all->buffers_.push_back(static_cast<int32_t>(b));
    places = std::min(places, model.buffers[b].keys);
  }
  if (all->buffers_.empty()) return nullptr;
  all->counts_ = Divide(places, devices);
  for (const DeviceShare& d : devices) all->chosen_.push_back(d.weight > 0);
  for (size_t m = 0; m < devices.size(); ++m) {
    PENSTOCK_RETURN_IF_ERROR(all->AddPlaces(runtime, model, static_cast<int>(m), devices[m], all->counts_[m]));
  }
  base::MutexLock lock(all->mu_);
  all->places_of_keys_.reserve(all->places_.size());
  return all;
}

absl::Status KeyedStates::AddPlaces(const std::shared_ptr<RuntimeCore>& runtime, const Model& model, int member,
                                    const DeviceShare& on, int count) {
  std::vector<int> added;
  for (int i = 0; i < count; ++i) {
    auto place = std::make_unique<Place>();
    place->member = member;
    for (const int32_t b : buffers_) {
      const BufferDecl& decl = model.buffers[b];
      absl::StatusOr<std::shared_ptr<StateCore>> state =
          StateCore::Create(runtime, {decl.name, decl.type, decl.extent, on.device, nullptr}, BytesOf(decl));
      if (!state.ok()) {
        return base::Prefixed(absl::StrCat(prefix_, ": KeyedState ", i + 1, " of ", count, " on this device"),
                              state.status());
      }
      PENSTOCK_RETURN_IF_ERROR((*state)->Reset({}, "Compile"));
      place->states.push_back(*std::move(state));
    }
    added.push_back(static_cast<int>(places_.size()));
    places_.push_back(std::move(place));
  }
  std::reverse(added.begin(), added.end());
  base::MutexLock lock(mu_);
  free_.push_back(std::move(added));
  return absl::OkStatus();
}

int KeyedStates::TakeFree(int member) {
  int best = member;
  double most = 0;
  for (size_t m = 0; m < free_.size() && member < 0; ++m) {
    if (!chosen_[m]) continue;
    const double part = static_cast<double>(free_[m].size()) / counts_[m];
    if (part > most) best = static_cast<int>(m), most = part;
  }
  if (best < 0 || free_[best].empty()) return -1;
  const int place = free_[best].back();
  free_[best].pop_back();
  return place;
}

absl::StatusOr<KeyedStates::Home> KeyedStates::Find(uint64_t key, int member) {
  base::MutexLock lock(mu_);
  auto at = places_of_keys_.find(key);
  if (at == places_of_keys_.end()) {
    const int place = TakeFree(member);
    if (place < 0) return Full(key, member);
    at = places_of_keys_.emplace(key, Entry{place}).first;
  }
  if (at->second.going) {
    return absl::FailedPreconditionError(
        absl::StrCat(prefix_, ": key ", key, " is being forgotten; use it when Forget has returned"));
  }
  const int place = at->second.place;
  const Place& found = *places_[place];
  if (member >= 0 && found.member != member) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix_, ": the States of key ", key,
                     " are on another device than the one named, and stay there; launch where they are (State::device "
                     "of Executable::StateOf tells), or Forget the key first"));
  }
  return Home{found.member, place, found.turn.load(std::memory_order_relaxed)};
}

absl::Status KeyedStates::Full(uint64_t key, int member) const {
  int count = 0;
  for (size_t m = 0; m < counts_.size(); ++m) {
    if (member < 0 ? chosen_[m] : static_cast<int>(m) == member) count += counts_[m];
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(prefix_, ": no State is left for key ", key, "; ", count, " keys have theirs",
                   member < 0 ? "" : " on this device",
                   "; Forget one that is not used any more, or declare more (KeyedStateOptions::max_keys)"));
}

absl::Status KeyedStates::PoisonOf(uint64_t key) {
  const Place* place = nullptr;
  {
    base::MutexLock lock(mu_);
    const auto at = places_of_keys_.find(key);
    if (at == places_of_keys_.end()) return absl::OkStatus();
    place = places_[at->second.place].get();
  }
  for (const auto& state : place->states) {
    if (absl::Status poison = state->status(); !poison.ok()) return poison;
  }
  return absl::OkStatus();
}

absl::Status KeyedStates::Forget(uint64_t key, Deadline deadline) {
  if (base::InUserCode()) {
    return absl::FailedPreconditionError(
        prefix_ + ": Forget inside a host node or callback, which could be what it waits for; call it outside");
  }
  Place* place = nullptr;
  {
    base::MutexLock lock(mu_);
    const auto at = places_of_keys_.find(key);
    if (at == places_of_keys_.end()) return absl::OkStatus();
    if (std::exchange(at->second.going, true)) {
      return absl::FailedPreconditionError(absl::StrCat(prefix_, ": key ", key, " is being forgotten already"));
    }
    place = places_[at->second.place].get();
    place->turn.fetch_add(1, std::memory_order_acq_rel);
  }
  absl::Status reset;
  for (const auto& state : place->states) reset.Update(state->Reset(deadline, "Forget"));
  base::MutexLock lock(mu_);
  const auto at = places_of_keys_.find(key);
  at->second.going = false;
  if (!reset.ok()) return reset;
  free_[place->member].push_back(at->second.place);
  places_of_keys_.erase(at);
  return absl::OkStatus();
}

}  // namespace penstock::runtime
