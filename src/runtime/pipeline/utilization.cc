#include "src/runtime/pipeline/utilization.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/thread_role.h"

namespace penstock::runtime {
namespace {

constexpr std::pair<SpanKind, const char*> kEngines[] = {
    {SpanKind::kUpload, "upload"}, {SpanKind::kKernel, "kernels"}, {SpanKind::kDownload, "download"}};

std::vector<std::shared_ptr<const Trace>> EachOnce(std::vector<std::shared_ptr<const Trace>> traces) {
  std::erase(traces, nullptr);
  std::sort(traces.begin(), traces.end());
  traces.erase(std::unique(traces.begin(), traces.end()), traces.end());
  return traces;
}

}  // namespace

BusyShares::BusyShares(std::vector<std::string> devices, std::vector<std::shared_ptr<const Trace>> traces)
    : devices_(std::move(devices)), traces_(EachOnce(std::move(traces))) {
  for (size_t d = 0; d < devices_.size(); ++d) {
    for (const auto& [kind, name] : kEngines) micros_before_.push_back(Micros(static_cast<int>(d), kind));
  }
  for (const base::ThreadRole::Time& time : base::ThreadRole::Times()) cpu_before_[time.serial] = time.cpu_ns;
}

double BusyShares::Micros(int device, SpanKind kind) const {
  double micros = 0;
  for (const auto& trace : traces_) micros += trace->BusyMicros(device, kind);
  return micros;
}

std::vector<BusyShare> BusyShares::Engines() const {
  std::vector<BusyShare> engines;
  const double elapsed = std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
  auto before = micros_before_.begin();
  for (size_t d = 0; d < devices_.size(); ++d) {
    for (const auto& [kind, name] : kEngines) {
      const double micros = Micros(static_cast<int>(d), kind) - *before++;
      if (micros > 0) engines.push_back({absl::StrCat(devices_[d], " ", name), std::min(1.0, micros / elapsed)});
    }
  }
  return engines;
}

std::vector<BusyShare> BusyShares::Threads() const {
  std::vector<BusyShare> threads;
  const double elapsed = std::chrono::duration<double, std::nano>(Clock::now() - begin_).count();
  for (const base::ThreadRole::Time& time : base::ThreadRole::Times()) {
    const auto before = cpu_before_.find(time.serial);
    const int64_t used = time.cpu_ns - (before == cpu_before_.end() ? 0 : before->second);
    threads.push_back({time.name, std::min(1.0, static_cast<double>(used) / elapsed)});
  }
  return threads;
}

}  // namespace penstock::runtime
