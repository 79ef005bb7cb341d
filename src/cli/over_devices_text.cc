#include "src/cli/over_devices_text.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

using analysis::DeviceCount;
using analysis::OverDevices;
using analysis::SpreadTimes;

const char* TitleOf(analysis::SpreadWay way) {
  switch (way) {
    case analysis::SpreadWay::kOne: return "one device";
    case analysis::SpreadWay::kAffinity: return "affinity";
    case analysis::SpreadWay::kHeft: return "HEFT";
  }
  return "?";
}

double TimesAsFast(const OverDevices& over, const SpreadTimes& times) {
  return times.run_us > 0 ? over.one_us / times.run_us : 1;
}

// Empty: this way was not tried.
std::string RunTimeBy(const DeviceCount& count, analysis::SpreadWay way) {
  for (const SpreadTimes& times : count.ways) {
    if (times.way == way) return TimeText(times.run_us);
  }
  return "";
}

std::string LinksLine(const analysis::PeerLinks& links) {
  return absl::StrFormat(
      "A crossing to another device takes %s, and %s of submission; a copy there %s and its bytes at %s.",
      TimeText(links.crossing_us), TimeText(links.crossing_submit_us), TimeText(links.other.us),
      analysis::RateText(links.other.gbs));
}

}  // namespace

std::vector<std::string> NotesOn(const OverDevices& over) {
  std::vector<std::string> notes = over.links.notes;
  notes.emplace_back(
      "a profile does not say what a node takes from another: the fewer of the bytes that the one writes and the other "
      "reads count");
  const auto crowded = std::find_if(over.counts.begin(), over.counts.end(),
                                    [](const DeviceCount& count) { return count.best_way().link_share > 1; });
  if (crowded != over.counts.end()) {
    notes.push_back(absl::StrFormat(
        "from %d devices on, all copies of a device together need %.1f times what one link can do; if its links share "
        "that, a run takes so many times as long",
        crowded->devices, crowded->best_way().link_share));
  }
  return notes;
}

std::string TextOf(const OverDevices& over) {
  TextTable table({"devices", "one device", "affinity", "HEFT", "<best", "as fast", "latency", "moved", "busy"});
  for (const DeviceCount& count : over.counts) {
    const SpreadTimes& best = count.best_way();
    table.Add({std::to_string(count.devices), RunTimeBy(count, analysis::SpreadWay::kOne),
               RunTimeBy(count, analysis::SpreadWay::kAffinity), RunTimeBy(count, analysis::SpreadWay::kHeft),
               TitleOf(best.way), absl::StrFormat("%.2fx", TimesAsFast(over, best)), TimeText(best.latency_us),
               SizeText(best.copied_bytes), PercentText(best.busy)});
  }
  std::ostringstream text;
  text << "\ntime per run over several devices, and what the best way moves and keeps busy\n";
  table.Write(text);
  text << Wrapped(LinksLine(over.links), 0) << '\n';
  for (const std::string& note : NotesOn(over)) text << Wrapped("note: " + note, 6) << '\n';
  return text.str();
}

nlohmann::json JsonOf(const OverDevices& over) {
  nlohmann::json counts = nlohmann::json::array();
  for (const DeviceCount& count : over.counts) {
    nlohmann::json ways = nlohmann::json::array();
    for (const SpreadTimes& times : count.ways) {
      ways.push_back({{"way", NameOf(times.way)},
                      {"run_us", times.run_us},
                      {"latency_us", times.latency_us},
                      {"times_as_fast", TimesAsFast(over, times)},
                      {"copied_bytes", times.copied_bytes},
                      {"copies", times.copies},
                      {"crossings", times.crossings},
                      {"busy", times.busy},
                      {"link_share", times.link_share}});
    }
    counts.push_back({{"devices", count.devices}, {"best", NameOf(count.best_way().way)}, {"ways", std::move(ways)}});
  }
  return {{"one_us", over.one_us},
          {"crossing_us", over.links.crossing_us},
          {"crossing_submit_us", over.links.crossing_submit_us},
          {"peer_copy_us", over.links.other.us},
          {"peer_gbs", over.links.other.gbs},
          {"notes", NotesOn(over)},
          {"counts", std::move(counts)}};
}

}  // namespace penstock::cli
