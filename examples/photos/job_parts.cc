// Bookkeeping of a job.
#include "job_parts.h"

#include <utility>

#include "timeline.h"

namespace photos {

EdgesGraph DeclareFor(const Catalogue& catalogue, const Options& options) {
  // Both fit: image_io refuses sides over kMaxSide.
  return DeclareEdges(static_cast<int32_t>(catalogue.max_height), static_cast<int32_t>(catalogue.max_width),
                      options.blur);
}

Item ItemAt(const Catalogue& catalogue, int64_t i) {
  const auto count = static_cast<int64_t>(catalogue.photos.size());
  Item item;
  item.photo = static_cast<size_t>(i % count);
  item.pass = i / count;
  return item;
}

std::vector<absl::Status> SkipList::statuses() const {
  std::vector<absl::Status> statuses;
  for (const auto& entry : statuses_) statuses.push_back(entry.second);
  return statuses;
}

void JobClock::Count(const ImageInfo& info) {
  ++measurement_.images;
  measurement_.bytes_up += info.rgb_bytes();
  measurement_.bytes_down += info.pixels();
}

int64_t JobClock::Elapsed() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
}

void JobClock::EndTracing() {
  measurement_.traced_images = measurement_.images;
  measurement_.traced_ns = Elapsed();
}

Measurement JobClock::Stop(const Stages& stages, const penstock::Trace& trace, int workers) {
  if (measurement_.traced_ns == 0) EndTracing();
  measurement_.wall_ns = Elapsed();
  measurement_.worker_cpu_ns = stages.cpu_ns();
  measurement_.workers = workers;
  measurement_.spans = StepsOf(trace.spans());
  return std::move(measurement_);
}

}  // namespace photos
