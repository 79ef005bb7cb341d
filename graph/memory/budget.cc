#include "graph/memory/budget.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graph/common/message.h"

namespace penstock::graph {
namespace {

constexpr size_t kNamed = 5;  // buffers named in a message

std::string Largest(const Records& records, const Ordered& ordered, DeviceId device) {
  std::vector<const Instance*> found;
  for (const Instance& instance : ordered.instances) {
    if (InArena(instance.space) && instance.device == device && instance.bytes > 0) found.push_back(&instance);
  }
  const auto name = [&](const Instance* i) { return records.buffer_name(i->buffer); };
  const auto larger = [&](const Instance* a, const Instance* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : name(a).view() < name(b).view();
  };
  std::sort(found.begin(), found.end(), larger);
  const auto same = [](const Instance* a, const Instance* b) { return a->buffer == b->buffer; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());  // of scratch, one stands for all
  const size_t shown = std::min(kNamed, found.size());
  if (shown == 0) return "";
  std::string text = shown == found.size() ? "the buffers in it are " : "the largest buffers in it are ";
  for (size_t i = 0; i < shown; ++i) {
    text += (i > 0 ? ", '" : "'") + std::string(name(found[i]).view()) + "' (" + Where(name(found[i]).source()) +
            ") of " + std::to_string(found[i]->bytes);
  }
  return text + (shown < found.size() ? " and " + std::to_string(found.size() - shown) + " more" : "") + "; ";
}

struct Budget {
  int64_t bytes = 0;  // 0: none
  std::string whose;
};

Budget BudgetOf(const PlanOptions& options, DeviceId device) {
  if (device < 0) return {options.pinned_bytes, "the limit of "};
  const int64_t memory = options.devices[device].memory_bytes, limit = options.device_bytes;
  if (limit > 0 && (memory <= 0 || limit < memory)) return {limit, "device_bytes of "};
  return {memory, "the device's memory of "};
}

std::string Advice(int64_t fit) {
  if (fit == 0) return "not even one slot fits: make buffers smaller";
  return "use at most " + std::to_string(fit) + (fit == 1 ? " slot" : " slots") + ", or make buffers smaller";
}

}  // namespace

std::string ArenaName(const Records& records, DeviceId device) {
  return device < 0 ? "pinned memory" : records.device_name(device);
}

void CheckBudget(const Records& records, const Ordered& ordered, Findings& findings, const Arena& arena) {
  const auto& [budget, whose] = BudgetOf(records.options, arena.device);
  if (budget <= 0 || arena.bytes == 0) return;
  const int64_t slots = arena.shared ? 1 : std::max(1, records.options.slots), fit = budget / arena.bytes;
  if (fit >= slots) return;
  findings.AddMistake(absl::StatusCode::kResourceExhausted,
                      Prefix(records.model) + " on " + ArenaName(records, arena.device) + ": " + std::to_string(slots) +
                          (slots == 1 ? " slot of " : " slots of ") + std::to_string(arena.bytes) + " bytes " +
                          (slots == 1 ? "does" : "do") + " not fit in " + whose + std::to_string(budget) + " bytes; " +
                          Largest(records, ordered, arena.device) + Advice(fit));
}

void ArenaTooLarge(const Records& records, const Ordered& ordered, Findings& findings, DeviceId device) {
  findings.AddMistake(absl::StatusCode::kResourceExhausted,
                      Prefix(records.model) + " on " + ArenaName(records, device) +
                          ": a slot would need more than 2^62 bytes; " + Largest(records, ordered, device) +
                          "make buffers smaller");
}

}  // namespace penstock::graph
