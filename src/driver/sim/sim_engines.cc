#include "src/driver/sim/sim_engines.h"

#include <algorithm>
#include <utility>

#include "src/base/catch_all.h"

namespace penstock::driver::sim {
namespace {

using graph::InMicros;
using graph::InTicks;

// As a host device executes it: not after a failure of its run, and its own fails the run.
void Execute(host::Task& task) {
  RunFault* const fault = task.tag.fault;
  if (fault != nullptr && fault->failed()) return;
  for (int chunk = 0; chunk < task.chunks; ++chunk) {
    absl::Status status = base::CatchAll("the callable", [&] { return task.Run(chunk); });
    if (!status.ok() && fault != nullptr) fault->Fail(task.tag.node, std::move(status));
  }
}

}  // namespace

SimEngines::SimEngines(const Options& options) : options_(options) {
  std::vector<graph::SimPool> pools;
  for (size_t d = 0; d < options.devices.size(); ++d) {
    graph::AddPoolsOf(options.devices[d], static_cast<int32_t>(d), pools);
  }
  base::MutexLock lock(mu_);
  for (const graph::SimPool& pool : pools) resources_.Add(pool);
  pools_ = static_cast<int32_t>(pools.size());
  links_.assign(options.devices.size() * options.devices.size(), -1);
}

int32_t SimEngines::LinkOf(int from, int to) {
  base::MutexLock lock(mu_);
  int32_t& link = links_[static_cast<size_t>(from) * options_.devices.size() + static_cast<size_t>(to)];
  if (link >= 0) return link;
  resources_.Add({.resource = graph::SimResource::kPeer, .device = to, .from = from});
  return link = pools_++;
}

auto SimEngines::EndAt() {
  return [this](SimTicks time, int32_t work, int32_t number) {
    mu_.AssertHeld();
    clock_.Add(time, {.kind = Event::Kind::kEnd, .work = work, .number_of_end = number});
  };
}

int32_t SimEngines::Add(SimLoad load, std::span<const SimPredecessor> after, SimTicks delay) {
  Tasks now_over;
  int32_t work = -1;
  {
    base::MutexLock lock(mu_);
    work = static_cast<int32_t>(works_.size());
    const bool takes_time = load.run >= 0;
    works_.push_back({.load = std::move(load)});
    const auto arrive_at = [&](SimTicks time) {
      mu_.AssertHeld();
      ++At(work).pending;
      clock_.Add(time, {.kind = Event::Kind::kArrive, .work = work});
    };
    for (const SimPredecessor& p : after) {
      Work& before = At(p.work);
      if (!before.ended()) {
        before.next.push_back({work, p.latency});
        ++At(work).pending;
      } else if (before.end + p.latency > clock_.now()) {
        arrive_at(before.end + p.latency);
      }
    }
    if (takes_time) arrive_at(clock_.now() + delay);
    if (At(work).pending == 0) End(work);
    now_over.swap(to_execute_);
  }
  for (const auto& task : now_over) Execute(*task);
  return work;
}

bool SimEngines::AreKnown(std::span<const SimPredecessor> works) const {
  base::MutexLock lock(mu_);
  return std::all_of(works.begin(), works.end(), [&](const SimPredecessor& p) {
    mu_.AssertHeld();
    const Work& work = At(p.work);
    const SimTicks latency = work.load.run < 0 ? 0 : InTicks(options_.completion_us);
    return work.ended() && work.end + latency <= clock_.now();
  });
}

void SimEngines::Report(std::span<const SimPredecessor> works) {
  base::MutexLock lock(mu_);
  for (const SimPredecessor& p : works) {
    Work& work = At(p.work);
    if (std::exchange(work.reported, true) || !work.ended()) continue;
    const SimTicks known = work.end + InTicks(options_.completion_us);
    if (known > clock_.now()) clock_.Add(known, {.kind = Event::Kind::kKnown});
  }
}

void SimEngines::Handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kArrive: return Arrive(event.work);
    case Event::Kind::kEnd:
      if (!resources_.IsVoid(At(event.work).load.pool, event.number_of_end)) End(event.work);
      return;
    case Event::Kind::kKnown: notify_ = true; return;
    case Event::Kind::kWake: return Wake(spending_[static_cast<size_t>(event.work)]);
  }
}

void SimEngines::Arrive(int32_t number) {
  Work& work = At(number);
  if (--work.pending > 0) return;
  if (work.load.run < 0) return End(number);
  if (work.load.pool < 0) return Begin(number, 0);
  resources_.Wait(
      work.load.pool,
      {.since = clock_.now(), .run = work.load.run, .slot = number, .node = work.load.node, .order = work.load.node});
}

void SimEngines::Begin(int32_t number, int32_t place) {
  Work& work = At(number);
  work.place = place;
  work.span = static_cast<int32_t>(spans_.size());
  spans_.push_back({.node = work.load.node, .run = work.load.run, .place = place, .begin_us = InMicros(clock_.now())});
  resources_.Begin(work.load.pool, number, work.load.cost, clock_.now(), EndAt());
}

void SimEngines::End(int32_t number) {
  Work& work = At(number);
  work.end = clock_.now();
  if (work.load.task != nullptr) to_execute_.push_back(std::move(work.load.task));
  if (work.load.run >= 0) {
    spans_[static_cast<size_t>(work.span)].end_us = InMicros(work.end);
    resources_.End(work.load.pool, work.place, clock_.now(), EndAt());
  }
  if (work.reported) clock_.Add(work.end + InTicks(options_.completion_us), {.kind = Event::Kind::kKnown});
  for (const SimPredecessor& next : std::exchange(work.next, {})) {
    if (next.latency == 0) Arrive(next.work);
    else clock_.Add(work.end + next.latency, {.kind = Event::Kind::kArrive, .work = next.work});
  }
}

// From now on the thread is not busy, although it may not have woken yet.
void SimEngines::Wake(Spending& spending) {
  spending.is_over = true;
  if (spending.steps) return;
  --busy_;
  wake_ = true;
}

bool SimEngines::IsOver(size_t spending) const {
  base::MutexLock lock(mu_);
  return spending_[spending].is_over;
}

void SimEngines::Spend(SimTicks ticks) {
  if (ticks == 0) return;
  const bool steps = std::this_thread::get_id() == stepper_;
  size_t call = 0;
  {
    base::MutexLock lock(mu_);
    call = spending_.size();
    spending_.push_back({.steps = steps});
    clock_.Add(clock_.now() + ticks, {.kind = Event::Kind::kWake, .work = static_cast<int32_t>(call)});
    busy_ += steps ? 0 : 1;
    while (!steps && !spending_[call].is_over) woken_.Wait(mu_);
  }
  while (!IsOver(call)) Step();
}

bool SimEngines::AdvanceLocked() {
  if (!clock_.Advance()) return false;
  while (clock_.IsDue()) Handle(clock_.Take());
  resources_.TakePlaces([this](const graph::SimReady& ready, int32_t, int32_t place) {
    mu_.AssertHeld();
    Begin(ready.slot, place);
  });
  return true;
}

bool SimEngines::Step() {
  options_.settle();
  Tasks over;
  bool notify = false;
  {
    base::MutexLock lock(mu_);
    if (!AdvanceLocked()) return false;
    over.swap(to_execute_);
    notify = std::exchange(notify_, false);
  }
  for (const auto& task : over) Execute(*task);
  if (notify && options_.event_count != nullptr) options_.event_count->Notify();
  {
    base::MutexLock lock(mu_);
    if (std::exchange(wake_, false)) woken_.NotifyAll();
  }
  options_.settle();
  return true;
}

SimTicks SimEngines::now() const {
  base::MutexLock lock(mu_);
  return clock_.now();
}

int SimEngines::busy() const {
  base::MutexLock lock(mu_);
  return busy_;
}

std::vector<graph::SimSpan> SimEngines::spans() const {
  base::MutexLock lock(mu_);
  return spans_;
}

}  // namespace penstock::driver::sim
