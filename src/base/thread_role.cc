#include "src/base/thread_role.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "src/base/annotate.h"
#include "src/base/mutex.h"
#include "src/base/process_life.h"

namespace penstock::base {
namespace {

constexpr size_t kMostKinds = 1000;  // a program may name stages as it likes

struct Roles {
  const int made_in = ForkCount();
  Mutex mu;
  uint64_t made ABSL_GUARDED_BY(mu) = 0;
  std::vector<const ThreadRole*> roles ABSL_GUARDED_BY(mu);
  std::map<std::string, int64_t> ended ABSL_GUARDED_BY(mu);  // of each kind: the processor time, in nanoseconds
};

Roles& AllRoles() {
  // Never destroyed, since threads may outlive the process's statics. A forked copy has none of its threads.
  static std::atomic<Roles*> all{new Roles};
  Roles* now = all.load(std::memory_order_acquire);
  if (now->made_in == ForkCount()) return *now;
  auto* const mine = new Roles;
  if (all.compare_exchange_strong(now, mine, std::memory_order_acq_rel)) return *mine;
  delete mine;  // another thread was faster
  return *now;
}

std::optional<int64_t> NanosecondsOf(clockid_t clock) {
  timespec used{};
  if (clock_gettime(clock, &used) != 0) return std::nullopt;
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// "ps-stage" of "ps-stage/1", "ps-0-run" of "ps-0-run1".
std::string KindOf(const std::string& name) {
  std::string kind = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (kind.ends_with('/')) kind.pop_back();
  return kind.empty() ? name : kind;
}

}  // namespace

ThreadRole::ThreadRole(std::string name) : name_(std::move(name)) {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  AnnotateThread(name_);
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) return;
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  serial_ = ++all.made;
  all.roles.push_back(this);
}

ThreadRole::~ThreadRole() {
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  const std::optional<int64_t> used = NanosecondsOf(clock_);  // no less than what Kinds has seen
  if (std::erase(all.roles, this) == 0 || !used) return;
  try {
    std::string kind = KindOf(name_);
    const bool room = all.ended.size() < kMostKinds || all.ended.contains(kind);
    all.ended[room ? std::move(kind) : std::string()] += *used;
  } catch (const std::bad_alloc&) {  // its time is lost, which is better than the process
  }
}

std::vector<ThreadRole::Kind> ThreadRole::Kinds() {
  std::map<std::string, Kind> by_name;
  Roles& all = AllRoles();
  {
    MutexLock lock(all.mu);
    for (const auto& [name, used] : all.ended) by_name[name].cpu_ns = used;
    for (const ThreadRole* const role : all.roles) {
      Kind& kind = by_name[KindOf(role->name_)];
      ++kind.threads;
      kind.cpu_ns += NanosecondsOf(role->clock_).value_or(0);
    }
  }
  std::vector<Kind> kinds;
  for (auto& [name, kind] : by_name) {
    kinds.push_back(std::move(kind));
    kinds.back().name = name;
  }
  return kinds;
}

std::vector<ThreadRole::Time> ThreadRole::Times() {
  std::vector<Time> times;
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  for (const ThreadRole* const role : all.roles) {
    const std::optional<int64_t> used = NanosecondsOf(role->clock_);
    if (used) times.push_back({role->name_, role->serial_, *used});
  }
  return times;
}

}  // namespace penstock::base
