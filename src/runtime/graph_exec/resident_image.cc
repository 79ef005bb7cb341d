#include "src/runtime/graph_exec/resident_image.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

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
static_assert(sizeof(detail::Decision) + kAlign <= ResidentImage::kMostArgsBytes);
static_assert(sizeof(detail::ResidentBranch) + ResidentImage::kMostTargets * sizeof(uint32_t) + kAlign <=
              ResidentImage::kMostArgsBytes);
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

size_t BytesOfArgs(const ResidentSection& section, int32_t task) {
  const GraphNodeEntry& node = section.region->nodes[static_cast<size_t>(task)];
  switch (node.op) {
    case Op::kFill: return sizeof(detail::ResidentFill);
    case Op::kCopy: return sizeof(detail::ResidentCopy);
    default: return section.slot->tables.kernels[node.index].args_size;
  }
}

uint64_t CodeOf(const ResidentSection& section, int32_t task) {
  const GraphNodeEntry& node = section.region->nodes[static_cast<size_t>(task)];
  switch (node.op) {
    case Op::kFill: return static_cast<uint64_t>(ResidentCode::kFill);
    case Op::kCopy: return static_cast<uint64_t>(ResidentCode::kCopy);
    default: return section.slot->graph().program().calls[node.index].task;
  }
}

size_t BytesOfBranch(const ResidentSection& section) {
  return sizeof(detail::ResidentBranch) + section.targets.size() * sizeof(uint32_t);
}

bool TakesTaskMemory(const ResidentSection& section) {
  if (section.region == nullptr) return false;
  const CompiledGraph& graph = section.slot->graph();
  return std::any_of(section.region->nodes.begin(), section.region->nodes.end(), [&](const GraphNodeEntry& node) {
    const DeclId decl = graph.plan().nodes[node.node].decl;
    return decl >= 0 && graph.model().nodes[decl].is_task && graph.model().nodes[decl].shape.shared_bytes > 0;
  });
}

std::span<const int32_t> TasksOf(const ResidentSection& section, int32_t worker) {
  if (worker >= section.workers()) return {};
  return section.region->schedule.tasks[worker];
}

}  // namespace

ResidentImage::ResidentImage(const Slot& slot, const driver::DeviceRef& device, std::vector<ResidentSection> sections,
                             uint64_t* times)
    : slot_(slot), device_(device), times_(times) {
  for (ResidentSection& of : sections) {
    workers_ = std::max(workers_, of.workers());
    Section& made = sections_.emplace_back();
    made.of = std::move(of);
  }
}

ResidentImage::~ResidentImage() { slot_.options().runtime.FreeDevice(device_, device_pages_); }

absl::StatusOr<std::unique_ptr<ResidentImage>> ResidentImage::Create(const Slot& slot, const driver::DeviceRef& device,
                                                                     std::vector<ResidentSection> sections,
                                                                     uint64_t* times) {
  assert(times == nullptr || sections.size() == 1);
  std::unique_ptr<ResidentImage> image(new ResidentImage(slot, device, std::move(sections), times));
  image->PlaceRecords();
  PENSTOCK_RETURN_IF_ERROR(image->Allocate());
  for (const Section& section : image->sections_) image->MakeRecords(section);
  for (const uint32_t page : image->goes_on_) image->RecordAt({page, 0}).goes_on = 1;
  image->MakeOp();
  return image;
}

// --- places ---

void ResidentImage::PlaceRecords() {
  for (Section& section : sections_) {
    const ResidentSection& of = section.of;
    const size_t tasks = of.region == nullptr ? 0 : of.region->nodes.size();
    section.tasks.resize(tasks);
    section.position.resize(tasks);
    section.begin.resize(static_cast<size_t>(workers_));
    section.branch.resize(static_cast<size_t>(workers_));
    for (int32_t w = 0; w < of.workers(); ++w) {
      uint32_t position = 0;
      for (const int32_t task : TasksOf(of, w)) section.position[static_cast<size_t>(task)] = ++position;
    }
    if (of.condition >= 0) section.decider = of.region->schedule.worker_of[static_cast<size_t>(of.condition)];
  }
  for (int32_t w = 0; w < workers_; ++w) PlaceRecordsOf(w);
  first_page_.push_back(pages_used_);
  if (times_ == nullptr) return;
  first_time_.assign(1, 0);
  for (int32_t w = 0; w < workers_; ++w) {
    first_time_.push_back(first_time_.back() + static_cast<uint32_t>(TasksOf(sections_[0].of, w).size()));
  }
}

// A worker's records in order, in pages of its own.
void ResidentImage::PlaceRecordsOf(int32_t worker) {
  first_page_.push_back(pages_used_++);
  used_ = 0;
  const size_t all = static_cast<size_t>(workers_) - 1;
  for (Section& section : sections_) {
    bool begins = true;
    const auto place = [&](size_t args, size_t waits) {
      const Place at = PlaceRecord(args, waits, begins);
      if (std::exchange(begins, false)) section.begin[static_cast<size_t>(worker)] = at;
      return at;
    };
    for (const int32_t task : TasksOf(section.of, worker)) {
      const size_t waits = task == section.of.condition ? all : section.of.region->schedule.waits[task].size();
      section.tasks[static_cast<size_t>(task)] = place(BytesOfArgs(section.of, task), waits);
    }
    if (!section.branches()) continue;
    if (section.has_record_that_decides() && worker == section.decider) {
      section.decides = place(sizeof(detail::Decision), all);
    }
    section.branch[static_cast<size_t>(worker)] = place(BytesOfBranch(section.of), 0);
  }
}

// Each page has room for the record at its end.
ResidentImage::Place ResidentImage::PlaceRecord(size_t args, size_t waits, bool begins_section) {
  const uint32_t bytes = RoundUp(sizeof(ResidentRecord) + RoundUp(args) + waits * sizeof(ResidentWait));
  if (used_ + bytes > detail::kMostRecordBytes) {
    if (!begins_section) goes_on_.push_back(pages_used_ - 1);
    ++pages_used_;
    used_ = 0;
  }
  const Place at{.page = pages_used_ - 1, .offset = used_};
  used_ += bytes;
  return at;
}

size_t ResidentImage::words_at() const {
  constexpr size_t kLine = 128;
  return (image_bytes() + kLine - 1) / kLine * kLine;
}

size_t ResidentImage::word_bytes() const {
  const size_t times = first_time_.empty() ? 0 : 2 * size_t{first_time_.back()};
  return (first_page_.size() * detail::kWordStride + times) * sizeof(uint64_t) + sizeof(detail::ResidentState);
}

absl::Status ResidentImage::Allocate() {
  PENSTOCK_ASSIGN_OR_RETURN(pinned_, slot_.options().pinned.Allocate(image_bytes(), slot_.options().pinned_node));
  pages_ = static_cast<std::byte*>(pinned_.data());
  std::memset(pages_, 0, first_page_at());
  std::memcpy(pages_ + first_page_at(), first_page_.data(), first_page_.size() * sizeof(uint32_t));
  std::copy(first_time_.begin(), first_time_.end(), reinterpret_cast<uint32_t*>(pages_ + first_time_at()));
  driver::Driver& driver = *device_.driver;
  const driver::CurrentDevice current(driver, device_.local);
  PENSTOCK_ASSIGN_OR_RETURN(void* const memory, driver.AllocateDevice(device_.local, words_at() + word_bytes()));
  device_pages_ = static_cast<std::byte*>(memory);
  return RunOnNewStream(driver, device_.local, slot_.options().runtime.event_count(), [&](driver::Stream stream) {
    return driver.Fill(stream, {.dst = device_pages_ + words_at(), .count = word_bytes()});
  });
}

absl::Status ResidentImage::Refresh(driver::Stream stream) {
  if (!stale_) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(device_.driver->Copy(stream, {.dst = device_pages_, .src = pages_, .width = image_bytes()}));
  stale_ = false;
  return absl::OkStatus();
}

// --- records ---

ResidentRecord& ResidentImage::RecordAt(const Place& place) const {
  return *reinterpret_cast<ResidentRecord*>(At(place));
}

void ResidentImage::MakeRecords(const Section& section) {
  const ResidentSection& of = section.of;
  for (int32_t task = 0; task < static_cast<int32_t>(section.tasks.size()); ++task) {
    const Place& at = section.tasks[static_cast<size_t>(task)];
    ResidentRecord& record = MakeRecord(at, CodeOf(of, task), BytesOfArgs(of, task));
    record.position = section.position[static_cast<size_t>(task)];
    record.flags = times_ == nullptr ? 0 : detail::kIsTimed;
  }
  for (int32_t w = 0; w < of.workers(); ++w) MarkRepeats(section, TasksOf(of, w));
  for (int32_t w = 0; section.branches() && w < workers_; ++w) MakeBranch(section, w);
  for (int32_t task = 0; task < static_cast<int32_t>(section.tasks.size()); ++task) {
    const int32_t worker = of.region->schedule.worker_of[static_cast<size_t>(task)];
    AddWaits(section, worker, WaitsOf(section, task), section.tasks[static_cast<size_t>(task)]);
  }
  if (!section.has_record_that_decides()) return;
  MakeRecord(section.decides, static_cast<uint64_t>(ResidentCode::kDecide), sizeof(detail::Decision));
  AddWaits(section, section.decider, WaitsForAll(section), section.decides);
}

void ResidentImage::MarkRepeats(const Section& section, std::span<const int32_t> tasks) {
  for (size_t i = 0; i + 1 < tasks.size(); ++i) {
    const Place& at = section.tasks[static_cast<size_t>(tasks[i])];
    const Place& next = section.tasks[static_cast<size_t>(tasks[i + 1])];
    if (at.page == next.page && RecordAt(at).code == RecordAt(next).code) RecordAt(at).flags |= detail::kRepeatsCode;
  }
}

ResidentRecord& ResidentImage::MakeRecord(const Place& at, uint64_t code, size_t args) {
  ResidentRecord& record = RecordAt(at);
  record.code = code;
  record.args = static_cast<uint16_t>(RoundUp(args));
  record.next = static_cast<uint16_t>(sizeof(record) + record.args);
  return record;
}

std::vector<ResidentImage::Wait> ResidentImage::WaitsOf(const Section& section, int32_t task) const {
  if (task == section.of.condition) return WaitsForAll(section);
  const graph::WorkerSchedule& schedule = section.of.region->schedule;
  std::vector<Wait> waits;
  for (const int32_t before : schedule.waits[task]) {
    const auto of = static_cast<size_t>(before);
    waits.push_back({schedule.worker_of[of], section.position[of]});
  }
  return waits;
}

// What the worker that decides waits for: that all others have done all, or have entered the section.
std::vector<ResidentImage::Wait> ResidentImage::WaitsForAll(const Section& section) const {
  std::vector<Wait> waits;
  for (int32_t w = 0; w < workers_; ++w) {
    if (w == section.decider) continue;
    const std::span<const int32_t> tasks = TasksOf(section.of, w);
    waits.push_back({w, tasks.empty() ? 0 : section.position[static_cast<size_t>(tasks.back())]});
  }
  return waits;
}

// To a record that has none yet. Those that are waited for signal.
void ResidentImage::AddWaits(const Section& section, int32_t worker, const std::vector<Wait>& waits, const Place& at) {
  ResidentRecord& record = RecordAt(at);
  auto* to = reinterpret_cast<ResidentWait*>(reinterpret_cast<std::byte*>(&record + 1) + record.args);
  for (const Wait& wait : waits) {
    const bool in_block = BlockOf(wait.worker) == BlockOf(worker);
    const auto number = static_cast<uint32_t>(wait.worker);
    *to++ = {.word = in_block ? number % kWorkersOfBlock | kInBlock : number, .position = wait.position};
    if (!in_block) record.flags |= detail::kWaitsForAll;
    Place signals = section.branch[static_cast<size_t>(wait.worker)];
    if (wait.position > 0) {
      const int32_t task = TasksOf(section.of, wait.worker)[wait.position - 1];
      signals = section.tasks[static_cast<size_t>(task)];
    }
    RecordAt(signals).flags |= in_block ? detail::kSignalsBlock : detail::kSignalsAll;
  }
  record.waits = static_cast<uint16_t>(waits.size());
  if (!waits.empty()) record.flags |= detail::kWaits;
  record.next = static_cast<uint16_t>(RoundUp(sizeof(record) + record.args + waits.size() * sizeof(ResidentWait)));
}

void ResidentImage::MakeBranch(const Section& section, int32_t worker) {
  const ResidentSection& of = section.of;
  ResidentRecord& record = MakeRecord(section.branch[static_cast<size_t>(worker)],
                                      static_cast<uint64_t>(ResidentCode::kBranch), BytesOfBranch(of));
  auto& branch = *reinterpret_cast<detail::ResidentBranch*>(&record + 1);
  const bool decides = worker == section.decider;
  const uint32_t first = BlockOf(section.decider) * kWorkersOfBlock;  // of its block
  const uint32_t in_block = std::min(static_cast<uint32_t>(workers_) - first, kWorkersOfBlock);
  branch.choices = static_cast<uint32_t>(of.targets.size()) - 1;
  branch.decides = decides ? 1 : 0;
  branch.in_block = (decides ? in_block > 1 : BlockOf(worker) == BlockOf(section.decider)) ? 1 : 0;
  branch.elsewhere = decides && in_block < static_cast<uint32_t>(workers_) ? 1 : 0;
  branch.loop = of.loop;
  branch.again = of.again ? 1 : 0;
  auto* target = reinterpret_cast<uint32_t*>(&branch + 1);
  for (const int32_t to : of.targets) *target++ = TargetOf(to, worker);
}

uint32_t ResidentImage::TargetOf(int32_t section, int32_t worker) const {
  const auto w = static_cast<size_t>(worker);
  if (section == static_cast<int32_t>(sections_.size())) return first_page_[w + 1] * kPageBytes;
  const Place& begin = sections_[static_cast<size_t>(section)].begin[w];
  return begin.page * kPageBytes + begin.offset;
}

void ResidentImage::Write() {
  stale_ = true;
  for (const Section& section : sections_) {
    if (section.has_record_that_decides() && section.of.decision != nullptr) {
      std::memcpy(At(section.decides) + sizeof(ResidentRecord), section.of.decision, sizeof(detail::Decision));
    }
    for (size_t task = 0; task < section.tasks.size(); ++task) {
      const SlotTables& tables = section.of.slot->tables;
      const GraphNodeEntry& node = section.of.region->nodes[task];
      std::byte* const args = At(section.tasks[task]) + sizeof(ResidentRecord);
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
}

// All sections with a kernel have the same.
void ResidentImage::MakeOp() {
  const auto workers = static_cast<uint32_t>(workers_);
  auto* const words = reinterpret_cast<uint64_t*>(device_pages_ + words_at());
  auto* const state = reinterpret_cast<detail::ResidentState*>(words + first_page_.size() * detail::kWordStride);
  args_ = {.pages = device_pages_,
           .first_page = reinterpret_cast<const uint32_t*>(device_pages_ + first_page_at()),
           .progress = words,
           .state = state,
           .stop = nullptr,
           .workers = workers,
           .times = times_ == nullptr ? nullptr : reinterpret_cast<uint64_t*>(state + 1),
           .times_of_host = times_,
           .first_time = reinterpret_cast<const uint32_t*>(device_pages_ + first_time_at())};
  for (const Section& section : sections_) {
    if (section.of.region == nullptr || section.of.region->kernel.kernel == nullptr) continue;
    op_.kernel = section.of.region->kernel.kernel;
    op_.awaits = section.of.region->kernel.awaits;
  }
  op_.grid = {(workers + kWorkersOfBlock - 1) / kWorkersOfBlock, 1, 1};
  op_.block = {std::min(workers, kWorkersOfBlock) * detail::kLanes, 1, 1};
  const bool takes_task_memory = std::any_of(sections_.begin(), sections_.end(),
                                             [](const Section& section) { return TakesTaskMemory(section.of); });
  op_.shared_bytes = takes_task_memory ? detail::kResidentSharedBytes : detail::kTaskMemoryAt;
  op_.argv = argv_;
  op_.argc = 1;
  op_.args = reinterpret_cast<const std::byte*>(&args_);
  op_.args_size = sizeof(args_);
  op_.rows = 1;
}

}  // namespace penstock::runtime
