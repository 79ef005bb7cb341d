#include "src/driver/cuda/cuda_refusals.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/detail/cuda_error.h"

namespace penstock::driver {
namespace {

constexpr size_t kLogBytes = 25600;  // the most that the driver keeps, by its documentation
constexpr size_t kTexts = 3;  // the most texts in a message

struct Watch {
  cudaStream_t stream;
  CUlogIterator log_begin;
  std::string last_errors;  // those set when a capture inside this one began or ended
};
thread_local std::vector<Watch> watches;  // nearly always one

void Join(std::string& texts, std::string_view text) {
  if (!texts.empty()) texts += "; ";
  texts += text;
}

std::string TakeLastError() {
  const cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? std::string() : detail::TextOfCudaError(code, "its last error");
}

std::string LogOfThread(const DriverApi& api, CUlogIterator begin) {
  if (LogPosition(api) == begin) return {};
  const std::unique_ptr<char[]> log(new char[kLogBytes]);
  size_t bytes = kLogBytes;
  if (api.logs_dump_to_memory(&begin, log.get(), &bytes, 0) != CUDA_SUCCESS) return {};
  return ErrorsOfThread({log.get(), std::min(bytes, kLogBytes)}, pthread_self());
}

}  // namespace

CUlogIterator LogPosition(const DriverApi& api) {
  CUlogIterator position = 0;
  return api.logs_current(&position, 0) == CUDA_SUCCESS ? position : 0;
}

void RefusalWatch::Begin(cudaStream_t stream, CUlogIterator log_begin) {
  const std::string stale = TakeLastError();
  if (!stale.empty() && !watches.empty()) Join(watches.back().last_errors, stale);
  watches.push_back({stream, log_begin, {}});
}

std::string RefusalWatch::End(const DriverApi& api, cudaStream_t stream) {
  const auto of = [&](const Watch& watch) { return watch.stream == stream; };
  const auto it = std::find_if(watches.rbegin(), watches.rend(), of);
  if (it == watches.rend()) return {};
  const Watch watch = std::move(*it);
  watches.erase(std::next(it).base());
  std::string texts = LogOfThread(api, watch.log_begin);
  const std::string last_error = TakeLastError();
  if (texts.empty()) texts = watch.last_errors;
  return texts.empty() ? last_error : texts;
}

std::string ErrorsOfThread(std::string_view log, unsigned long thread) {
  const std::string mine = "][" + std::to_string(thread) + "][";
  std::vector<std::string_view> texts;
  size_t more = 0;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const size_t level = line.find("[E] ");
    const bool lost = line.starts_with("Log buffer has rolled over");
    if (!lost && (level == std::string_view::npos || line.find(mine) > level)) continue;
    const std::string_view text = lost ? line : line.substr(level + 4);
    // Loading a library looks its internal functions up as kernels, in vain; of a launch without a kernel the last
    // error tells.
    if (text.ends_with("cannot be found in library")) continue;
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    if (texts.size() < kTexts) texts.push_back(text);
    else ++more;
  }
  std::string joined;
  for (const std::string_view text : texts) Join(joined, text);
  if (more > 0) Join(joined, "and " + std::to_string(more) + " more");
  return joined;
}

}  // namespace penstock::driver
