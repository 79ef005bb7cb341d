#include "src/runtime/graph_exec/resident_image.h"

#include <algorithm>
#include <cstring>

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"

namespace penstock::runtime {
namespace {

using detail::kInBlock;
using detail::kPageBytes;
using detail::kWorkersOfBlock;
using detail::ResidentCode;
using detail::ResidentRecord;
using detail::ResidentWait;
using Op = ExecCommand::Op;

constexpr uint32_t kAlign = alignof(ResidentRecord);
static_assert(ResidentImage::kMostArgsBytes + ResidentImage::kMostWorkers * sizeof(ResidentWait) +
                  sizeof(ResidentRecord) <=
              detail::kMostRecordBytes);

constexpr uint32_t RoundUp(size_t bytes) { return static_cast<uint32_t>((bytes + kAlign - 1) / kAlign * kAlign); }

uint32_t BlockOf(int32_t worker) { return static_cast<uint32_t>(worker) / kWorkersOfBlock; }

detail::ResidentFill ResidentFillOf(const driver::FillOp& op) {
  detail::ResidentFill fill{.to = op.dst,
                            .count = op.count,
                            .height = op.height,
                            .depth = op.depth,
                            .pitch = op.pitch,
                            .slice = op.slice,
                            .pattern_bytes = op.pattern_size,
                            .reserved = 0,
                            .pattern = {}};
  std::memcpy(fill.pattern, op.pattern.data(), sizeof(fill.pattern));
  return fill;
}

detail::ResidentCopy ResidentCopyOf(const driver::CopyOp& op) {
  return {.to = op.dst,
          .from = op.src,
          .width = op.width,
          .height = op.height,
          .depth = op.depth,
          .to_pitch = op.dst_pitch,
          .from_pitch = op.src_pitch,
          .to_slice = op.dst_slice,
          .from_slice = op.src_slice};
}

}  // namespace

ResidentImage::ResidentImage(Slot& slot, const driver::DeviceRef& device, const RegionEntry& region)
    : slot_(slot), device_(device), region_(region), places_(region.nodes.size()) {}

ResidentImage::~ResidentImage() { slot_.options().runtime.FreeDevice(device_, device_pages_); }

absl::StatusOr<std::unique_ptr<ResidentImage>> ResidentImage::Create(Slot& slot, const driver::DeviceRef& device,
                                                                     const RegionEntry& region) {
  std::unique_ptr<ResidentImage> image(new ResidentImage(slot, device, region));
  image->PlaceTasks();
  PENSTOCK_RETURN_IF_ERROR(image->Allocate());
  image->MakeRecords();
  image->MakeOp();
  return image;
}

uint32_t ResidentImage::BytesOfArgs(int32_t task) const {
  const GraphNodeEntry& node = region_.nodes[static_cast<size_t>(task)];
  switch (node.op) {
    case Op::kFill: return sizeof(detail::ResidentFill);
    case Op::kCopy: return sizeof(detail::ResidentCopy);
    default: return slot_.tables.kernels[node.index].args_size;
  }
}

// Each worker's tasks in order, in pages of its own, each of which has room for the record at its end.
void ResidentImage::PlaceTasks() {
  for (int32_t w = 0; w < region_.schedule.workers; ++w) {
    first_page_.push_back(static_cast<uint32_t>(ends_.size()));
    Place next{.page = first_page_.back(), .offset = 0};
    for (const int32_t task : region_.schedule.tasks[w]) {
      const uint32_t bytes = RoundUp(sizeof(ResidentRecord) + RoundUp(BytesOfArgs(task)) +
                                     region_.schedule.waits[task].size() * sizeof(ResidentWait));
      if (next.offset + bytes > detail::kMostRecordBytes) {
        ends_.push_back(next);
        next = {.page = next.page + 1, .offset = 0};
      }
      places_[static_cast<size_t>(task)] = next;
      next.offset += bytes;
    }
    ends_.push_back(next);
  }
  first_page_.push_back(static_cast<uint32_t>(ends_.size()));
}

size_t ResidentImage::words_at() const {
  constexpr size_t kLine = 128;
  return (image_bytes() + kLine - 1) / kLine * kLine;
}

absl::Status ResidentImage::Allocate() {
  PENSTOCK_ASSIGN_OR_RETURN(pinned_, slot_.options().pinned.Allocate(image_bytes(), slot_.options().pinned_node));
  pages_ = static_cast<std::byte*>(pinned_.data());
  const size_t pages = ends_.size() * kPageBytes;
  std::memset(pages_, 0, pages);
  std::memcpy(pages_ + pages, first_page_.data(), first_page_.size() * sizeof(uint32_t));
  driver::Driver& driver = *device_.driver;
  const driver::CurrentDevice current(driver, device_.local);
  const size_t words = first_page_.size() * detail::kWordStride * sizeof(uint64_t) + sizeof(detail::ResidentState);
  PENSTOCK_ASSIGN_OR_RETURN(void* const memory, driver.AllocateDevice(device_.local, words_at() + words));
  device_pages_ = static_cast<std::byte*>(memory);
  return RunOnNewStream(driver, device_.local, slot_.options().runtime.event_count(), [&](driver::Stream stream) {
    return driver.Fill(stream, {.dst = device_pages_ + words_at(), .count = words});
  });
}

absl::Status ResidentImage::Refresh(driver::Stream stream) {
  if (!stale_) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(device_.driver->Copy(stream, {.dst = device_pages_, .src = pages_, .width = image_bytes()}));
  stale_ = false;
  return absl::OkStatus();
}

// The word by which worker `reader` knows how far `worker` has come.
uint32_t ResidentImage::WordFor(int32_t worker, int32_t reader) const {
  const auto number = static_cast<uint32_t>(worker);
  return BlockOf(worker) == BlockOf(reader) ? number % kWorkersOfBlock | kInBlock : number;
}

void ResidentImage::MakeRecords() {
  const graph::WorkerSchedule& schedule = region_.schedule;
  std::vector<uint32_t> position(places_.size());
  for (int32_t w = 0; w < schedule.workers; ++w) {
    uint32_t next = 1;
    for (const int32_t task : schedule.tasks[w]) position[static_cast<size_t>(task)] = next++;
  }
  for (int32_t w = 0; w < schedule.workers; ++w) {
    for (const int32_t task : schedule.tasks[w]) MakeRecord(task, position);
  }
}

void ResidentImage::MakeRecord(int32_t task, const std::vector<uint32_t>& position) {
  const graph::WorkerSchedule& schedule = region_.schedule;
  const auto at = static_cast<size_t>(task);
  const std::span<const int32_t> waits = schedule.waits[task];
  const uint32_t args = RoundUp(BytesOfArgs(task));
  auto& record = *reinterpret_cast<ResidentRecord*>(At(places_[at]));
  record.code = CodeOf(region_.nodes[at]);
  record.args = static_cast<uint16_t>(args);
  record.next = static_cast<uint16_t>(RoundUp(sizeof(record) + args + waits.size() * sizeof(ResidentWait)));
  record.waits = static_cast<uint16_t>(waits.size());
  record.position = position[at];
  auto* wait = reinterpret_cast<ResidentWait*>(reinterpret_cast<std::byte*>(&record + 1) + args);
  for (const int32_t before : waits) {
    const auto of = static_cast<size_t>(before);
    auto& signaller = *reinterpret_cast<ResidentRecord*>(At(places_[of]));
    *wait = {.word = WordFor(schedule.worker_of[of], schedule.worker_of[at]), .position = position[of]};
    const bool in_block = (wait->word & kInBlock) != 0;
    (in_block ? signaller.signals_block : signaller.signals_all) = 1;
    if (!in_block) record.wide = 1;
    ++wait;
  }
}

uint64_t ResidentImage::CodeOf(const GraphNodeEntry& node) const {
  switch (node.op) {
    case Op::kFill: return static_cast<uint64_t>(ResidentCode::kFill);
    case Op::kCopy: return static_cast<uint64_t>(ResidentCode::kCopy);
    default: return slot_.graph().program().calls[node.index].task;
  }
}

void ResidentImage::Write() {
  stale_ = true;
  const SlotTables& tables = slot_.tables;
  for (size_t task = 0; task < places_.size(); ++task) {
    const GraphNodeEntry& node = region_.nodes[task];
    std::byte* const args = At(places_[task]) + sizeof(ResidentRecord);
    if (node.op == Op::kFill) {
      const detail::ResidentFill fill = ResidentFillOf(tables.fills[node.index]);
      std::memcpy(args, &fill, sizeof(fill));
    } else if (node.op == Op::kCopy) {
      const detail::ResidentCopy copy = ResidentCopyOf(tables.copies[node.index]);
      std::memcpy(args, &copy, sizeof(copy));
    } else {
      const driver::KernelOp& kernel = tables.kernels[node.index];
      std::memcpy(args, kernel.args, kernel.args_size);
    }
  }
}

void ResidentImage::MakeOp() {
  const auto workers = static_cast<uint32_t>(region_.schedule.workers);
  auto* const words = reinterpret_cast<uint64_t*>(device_pages_ + words_at());
  args_ = {.pages = device_pages_,
           .first_page = reinterpret_cast<const uint32_t*>(device_pages_ + ends_.size() * kPageBytes),
           .progress = words,
           .state = reinterpret_cast<detail::ResidentState*>(words + first_page_.size() * detail::kWordStride),
           .workers = workers};
  op_.kernel = region_.kernel.kernel;
  op_.awaits = region_.kernel.awaits;
  op_.grid = {(workers + kWorkersOfBlock - 1) / kWorkersOfBlock, 1, 1};
  op_.block = {std::min(workers, kWorkersOfBlock) * detail::kLanes, 1, 1};
  op_.shared_bytes = detail::kResidentSharedBytes;
  op_.argv = argv_;
  op_.argc = 1;
  op_.args = reinterpret_cast<const std::byte*>(&args_);
  op_.args_size = sizeof(args_);
  op_.rows = 1;
}

}  // namespace penstock::runtime
