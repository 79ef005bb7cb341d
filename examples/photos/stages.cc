// Pixels go from the decoder straight into pinned memory and from pinned memory straight into the encoder.
#include "stages.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "errors.h"
#include "names.h"
#include "penstock/status_macros.h"
#include "reference.h"

namespace photos {
namespace {

int64_t ThreadCpuNs() {
  timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return int64_t{1000000000} * time.tv_sec + time.tv_nsec;
}

// A number for each thread that works here, for its line in the trace.
int ThreadNumber() {
  static std::atomic<int> next{0};
  thread_local const int number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

std::span<uint8_t> BytesOf(const penstock::HostBuffer<Rgb>& rgb) {
  return {reinterpret_cast<uint8_t*>(rgb.data()), static_cast<size_t>(rgb.size()) * sizeof(Rgb)};
}

absl::Status WrongResult(const Photo& photo, const char* reference) {
  return Error(absl::StatusCode::kInternal, absl::StrCat("the edges of ", Quoted(photo.path), " are wrong"),
               absl::StrCat("they differ from ", reference), "report it");
}

}  // namespace

// Adds a span to the trace, and CPU time to the sum, when it goes.
class Stages::Stopwatch {
 public:
  Stopwatch(Stages* stages, const char* name)
      : stages_(stages),
        name_(name),
        cpu_begin_(ThreadCpuNs()),
        begin_us_(stages->trace_ ? stages->trace_->Now() : 0) {}
  ~Stopwatch() {
    stages_->cpu_ns_.fetch_add(ThreadCpuNs() - cpu_begin_, std::memory_order_relaxed);
    if (stages_->trace_ == nullptr) return;
    penstock::Span span;
    span.name = name_;
    span.track = absl::StrCat("pictures ", ThreadNumber());
    span.begin_us = begin_us_;
    span.end_us = stages_->trace_->Now();
    stages_->trace_->Add(std::move(span));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Stages* const stages_;
  const char* const name_;
  const int64_t cpu_begin_;
  const double begin_us_;
};

// What a preloaded job keeps of a photograph.
struct Stages::Kept {
  absl::Status status;  // constant after Preload, as is `item`
  Item item;
  std::once_flag once;  // whoever finishes it first, of any pass, sets `first`
  std::vector<uint8_t> first;
};

Stages::Stages(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
               std::shared_ptr<penstock::Trace> trace)
    : options_(options), catalogue_(catalogue), runtime_(runtime), trace_(std::move(trace)) {}

Stages::~Stages() = default;

absl::Status Stages::DecodeFile(Item* item) {
  const Photo& file = photo(*item);
  PENSTOCK_ASSIGN_OR_RETURN(item->rgb, runtime_->MakeHostBuffer<Rgb>(file.info.pixels()));
  absl::Status status = DecodeRgb(file.path, file.info, BytesOf(item->rgb));
  item->unreadable = !status.ok();
  return status;
}

void Stages::Preload() {
  kept_.resize(catalogue_.photos.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next.fetch_add(1); i < kept_.size(); i = next.fetch_add(1)) {
      kept_[i] = std::make_unique<Kept>();
      kept_[i]->item.photo = i;
      kept_[i]->status = DecodeFile(&kept_[i]->item);
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min<size_t>(static_cast<size_t>(options_.workers), kept_.size());
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

absl::Status Stages::Decode(Item* item) {
  Stopwatch stopwatch(this, kDecodeSpan);
  if (kept_.empty()) {
    PENSTOCK_RETURN_IF_ERROR(DecodeFile(item));
  } else {
    const Kept& kept = *kept_[item->photo];
    item->unreadable = kept.item.unreadable;
    PENSTOCK_RETURN_IF_ERROR(kept.status);
    item->rgb = penstock::HostBuffer<Rgb>(kept.item.rgb.block(), kept.item.rgb.size());
  }
  PENSTOCK_ASSIGN_OR_RETURN(item->edges, runtime_->MakeHostBuffer<uint8_t>(item->rgb.size()));
  return absl::OkStatus();
}

absl::Status Stages::CheckAgainstReference(const Item& item) {
  const ImageInfo& info = photo(item).info;
  const GreyPicture expected = ReferenceEdges(BytesOf(item.rgb), info.width, info.height, options_.blur);
  const std::span<const uint8_t> edges = item.edges.span();
  return std::equal(edges.begin(), edges.end(), expected.pixels.begin(), expected.pixels.end())
             ? absl::OkStatus()
             : WrongResult(photo(item), "the reference");
}

absl::Status Stages::CheckAgainstFirst(const Item& item) {
  Kept& kept = *kept_[item.photo];
  const std::span<const uint8_t> edges = item.edges.span();
  std::call_once(kept.once, [&] { kept.first.assign(edges.begin(), edges.end()); });
  return std::memcmp(kept.first.data(), edges.data(), edges.size()) == 0 ? absl::OkStatus()
                                                                         : WrongResult(photo(item), "an earlier pass");
}

absl::Status Stages::WriteFile(const Item& item) {
  const ImageInfo& info = photo(item).info;
  return EncodeGreyPng(JoinPath(options_.output, EdgesName(photo(item).name)), info.width, info.height,
                       item.edges.span(), options_.compression);
}

absl::Status Stages::Finish(Item* item) {
  Stopwatch stopwatch(this, kEncodeSpan);
  const Item done = std::move(*item);
  if (options_.verify) {
    if (absl::Status status = CheckAgainstReference(done); !status.ok()) return status;
  }
  if (!kept_.empty()) {
    if (absl::Status status = CheckAgainstFirst(done); !status.ok()) return status;
    if (done.pass > 0) return absl::OkStatus();
  }
  return WriteFile(done);
}

}  // namespace photos
