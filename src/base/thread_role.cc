#include "src/base/thread_role.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/mutex.h"
#include "src/base/process_life.h"

namespace penstock::base {
namespace {

struct Roles {
  const int made_in = ForkCount();
  Mutex mu;
  uint64_t made ABSL_GUARDED_BY(mu) = 0;
  std::vector<const ThreadRole*> roles ABSL_GUARDED_BY(mu);
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

}  // namespace

ThreadRole::ThreadRole(std::string name) : name_(std::move(name)) {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) return;
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  serial_ = ++all.made;
  all.roles.push_back(this);
}

ThreadRole::~ThreadRole() {
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  std::erase(all.roles, this);
}

std::vector<ThreadRole::Time> ThreadRole::Times() {
  std::vector<Time> times;
  Roles& all = AllRoles();
  MutexLock lock(all.mu);
  for (const ThreadRole* const role : all.roles) {
    timespec used{};
    if (clock_gettime(role->clock_, &used) != 0) continue;
    times.push_back({role->name_, role->serial_, int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec});
  }
  return times;
}

}  // namespace penstock::base
