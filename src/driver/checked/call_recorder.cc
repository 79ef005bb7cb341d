#include "src/driver/checked/call_recorder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace penstock::driver::checked {
namespace {

struct NamedSum {
  const char* name;
  Totals::Sum Totals::* sum;
};
constexpr NamedSum kSums[] = {{"uploads", &Totals::uploads},
                              {"downloads", &Totals::downloads},
                              {"inside", &Totals::inside},
                              {"peer", &Totals::peer},
                              {"batch_uploads", &Totals::batch_uploads},
                              {"batch_downloads", &Totals::batch_downloads},
                              {"batch_inside", &Totals::batch_inside},
                              {"fills", &Totals::fills},
                              {"device_allocations", &Totals::device_allocations},
                              {"pinned_allocations", &Totals::pinned_allocations}};

constexpr int kIllegalAddress = 700;  // cudaErrorIllegalAddress, the result of a null write on the device

}  // namespace

std::string TextOf(const Gauges& g) {
  return absl::StrCat(g.streams, " streams, ", g.events, " events, ", g.device_blocks, " device blocks (",
                      g.device_bytes, " bytes), ", g.pinned_blocks, " pinned blocks (", g.pinned_bytes, " bytes), ",
                      g.graphs, " graphs, ", g.execs, " execs, ", g.captures, " captures");
}

SumOfTotals SumOf(CopyKind kind, bool batch) {
  switch (kind) {
    case CopyKind::kHostToDevice: return batch ? &Totals::batch_uploads : &Totals::uploads;
    case CopyKind::kDeviceToHost: return batch ? &Totals::batch_downloads : &Totals::downloads;
    case CopyKind::kDeviceToDevice: return batch ? &Totals::batch_inside : &Totals::inside;
    case CopyKind::kPeer: break;
  }
  return &Totals::peer;
}

Totals operator-(const Totals& later, const Totals& earlier) {
  Totals between = later;
  between.pieces -= earlier.pieces;
  for (const NamedSum& named : kSums) {
    (between.*named.sum).calls -= (earlier.*named.sum).calls;
    (between.*named.sum).bytes -= (earlier.*named.sum).bytes;
  }
  return between;
}

std::string TextOf(const Totals& totals) {
  std::string text;
  for (const NamedSum& named : kSums) {
    const Totals::Sum& sum = totals.*named.sum;
    if (sum == Totals::Sum{}) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", named.name, " ", sum.calls, " with ", sum.bytes, " bytes");
  }
  if (totals.pieces != 0) absl::StrAppend(&text, ", in ", totals.pieces, " pieces");
  return text.empty() ? "nothing" : text;
}

void CallRecorder::FailNth(CallKind kind, int64_t n, absl::Status failure) {
  base::MutexLock lock(mu_);
  faults_.FailNth(kind, n, std::move(failure));
}

void CallRecorder::DieAtNth(CallKind kind, int64_t n) {
  absl::Status fatal =
      base::WithFault(absl::InternalError(absl::StrCat("injected fatal fault at ", NameOf(kind), " call ", n)),
                      {.cuda_code = kIllegalAddress, .fatal = true});
  base::MutexLock lock(mu_);
  faults_.DieAtNth(kind, n, std::move(fatal));
}

void CallRecorder::ClearFaults() {
  base::MutexLock lock(mu_);
  faults_.Clear();
}

bool CallRecorder::fault_fired() const {
  base::MutexLock lock(mu_);
  return faults_.fired();
}

void CallRecorder::KeepCalls(bool keep) {
  base::MutexLock lock(mu_);
  log_.set_keep(keep);
}

CallLog CallRecorder::log() const {
  base::MutexLock lock(mu_);
  return log_;
}

std::vector<std::string> CallRecorder::violations() const {
  base::MutexLock lock(mu_);
  return violations_;
}

std::vector<std::string> CallRecorder::TakeViolations() {
  base::MutexLock lock(mu_);
  return std::exchange(violations_, {});
}

Gauges CallRecorder::gauges() const {
  base::MutexLock lock(mu_);
  return gauges_;
}

Totals CallRecorder::totals() const {
  base::MutexLock lock(mu_);
  return totals_;
}

void CallRecorder::Count(Totals::Sum Totals::* sum, size_t bytes, size_t pieces) {
  base::MutexLock lock(mu_);
  ++(totals_.*sum).calls;
  (totals_.*sum).bytes += static_cast<int64_t>(bytes);
  totals_.pieces += static_cast<int64_t>(pieces);
}

void CallRecorder::Count(const Totals& done) {
  base::MutexLock lock(mu_);
  totals_.pieces += done.pieces;
  for (const NamedSum& named : kSums) {
    (totals_.*named.sum).calls += (done.*named.sum).calls;
    (totals_.*named.sum).bytes += (done.*named.sum).bytes;
  }
}

absl::Status CallRecorder::Begin(const Call& call) {
  base::MutexLock lock(mu_);
  log_.Add(call);
  return faults_.Next(call.kind);
}

void CallRecorder::Note(const Call& call) {
  base::MutexLock lock(mu_);
  log_.Add(call);
}

bool CallRecorder::dead() const {
  base::MutexLock lock(mu_);
  return faults_.dead();
}

absl::Status CallRecorder::Violated(const char* rule, const std::string& what) {
  std::string text = absl::StrCat("checked driver, rule '", rule, "': ", what);
  base::MutexLock lock(mu_);
  violations_.push_back(text);
  if (report_) unreported_.push_back(text);
  return absl::FailedPreconditionError(text);
}

void CallRecorder::Report() {
  std::vector<std::string> texts;
  {
    base::MutexLock lock(mu_);
    texts = std::exchange(unreported_, {});
  }
  for (const std::string& text : texts) report_(text);
}

void CallRecorder::Change(const Gauges& by) {
  base::MutexLock lock(mu_);
  gauges_.streams += by.streams;
  gauges_.events += by.events;
  gauges_.device_blocks += by.device_blocks;
  gauges_.pinned_blocks += by.pinned_blocks;
  gauges_.device_bytes += by.device_bytes;
  gauges_.pinned_bytes += by.pinned_bytes;
  gauges_.graphs += by.graphs;
  gauges_.execs += by.execs;
  gauges_.captures += by.captures;
}

}  // namespace penstock::driver::checked
