// Finds what went wrong in the log of a web server: chunks of records go through a pipeline whose device stage keeps
// the slow and the failed requests, however many these are, and counts latencies. README.md explains it. The log is
// made up.
//
//   log_analytics [--devices cuda | host:2] [--chunks 40]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kMostRecords = 1 << 15;  // of a chunk
constexpr int kBins = 240;

struct Record {
  uint32_t ms, status, bytes, us;  // when it came, the HTTP status, the size of the response, how long it took
};
// What is told of a request that went wrong.
struct Alert {
  uint32_t ms, us;
  bool operator==(const Alert&) const = default;
};

struct IsBad {
  PS_HOST_DEVICE bool operator()(const Record& r) const { return r.status >= 500 || r.us >= 100'000; }
};
struct MakeAlert {
  PS_HOST_DEVICE void operator()(int64_t i, const Record* kept, Alert* alerts) const {
    alerts[i] = {kept[i].ms, kept[i].us};
  }
};
struct Bytes {
  PS_HOST_DEVICE int64_t operator()(int64_t i, const Record* kept) const { return kept[i].bytes; }
};
// Eight bins for each power of two, so that a bin is at most an eighth wide: 0, 1, ..., 15, 16-17, ..., 30-31, 32-35,
// ...
struct BinOf {
  bool bad_only;
  PS_HOST_DEVICE int operator()(const Record& r) const {
    if (bad_only && !IsBad()(r)) return -1;  // in no bin, so it is not counted
    int octave = 0;
    uint32_t us = r.us;
    for (; us >= 16; us /= 2) ++octave;
    return 8 * octave + static_cast<int>(us);
  }
};

// All that is found out.
struct Findings {
  std::vector<Alert> alerts;
  std::vector<int64_t> all = std::vector<int64_t>(kBins), bad = std::vector<int64_t>(kBins);  // records in each bin
  int64_t bytes = 0;  // of the responses that went wrong
  bool operator==(const Findings&) const = default;
};

// Record i of the log. A request takes some 2 ms, and one of 16 up to some hundred times as long; from each 80th second
// on a database is down for 4 seconds. Bits are mixed as in SplitMix64 (Steele, Lea and Flood 2014).
Record MakeRecord(uint64_t i) {
  uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  const auto ms = static_cast<uint32_t>(i / 8);
  const bool is_down = ms % 80'000 < 4'000 && bits % 4 == 0;
  const uint32_t usual = 1'000 + static_cast<uint32_t>(bits >> 20 & 2047);
  const uint32_t times = (bits >> 32 & 15) == 0 ? 1 + static_cast<uint32_t>(bits >> 40 & 127) : 1;
  return {ms, is_down ? 503u : 200u, static_cast<uint32_t>(bits >> 50), usual * times};
}
int RecordsOf(int chunk) { return kMostRecords - chunk * 7919 % 1000; }  // lines have no fixed length

// The same by plain loops, to check the result. Each bin is found by where it begins.
Findings Expected(int chunks) {
  std::vector<uint64_t> begins;
  for (uint64_t width = 1, at = 0; begins.size() < kBins; at += width) {
    begins.push_back(at);
    if (begins.size() > 16 && begins.size() % 8 == 1) width *= 2;
  }
  Findings f;
  uint64_t end = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) end += static_cast<uint64_t>(RecordsOf(chunk));
  for (uint64_t i = 0; i < end; ++i) {
    const Record r = MakeRecord(i);
    const auto bin = std::upper_bound(begins.begin(), begins.end(), uint64_t{r.us}) - begins.begin() - 1;
    ++f.all[bin];
    if (r.status < 500 && r.us < 100'000) continue;
    ++f.bad[bin];
    f.alerts.push_back({r.ms, r.us});
    f.bytes += r.bytes;
  }
  return f;
}

// A row of the table: how many records, and in what time in ms so many of them were done, rounded up to the end of a
// bin.
void Show(const char* what, const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  std::printf("%-15s %9lld", what, static_cast<long long>(total));
  for (const int64_t per_mille : {500, 900, 990, 999}) {
    int64_t below = 0;
    uint64_t bin = 0;
    while (bin + 1 < kBins && (below += counts[bin]) * 1000 < total * per_mille) ++bin;
    const uint64_t end = bin < 16 ? bin + 1 : (9 + bin % 8) << (bin / 8 - 1);
    std::printf(" %8.2f", static_cast<double>(end) / 1000);
  }
  std::printf("\n");
}

absl::Status Run(const std::string& devices, int chunks) {
  ps::Graph graph("analyse");
  auto n = graph.Param<int>("n", ps::AtMost(kMostRecords));
  auto records = graph.Input<Record>("records", n, ps::kSlot);  // pinned memory of the slot's own
  auto kept = graph.Buffer<Record>("kept", n);
  auto count = graph.Buffer<int>("count", 1);
  auto alerts = graph.Output<Alert>("alerts", ps::CountOf(count, n), ps::kSlot);
  auto bytes = graph.Output<int64_t>("bytes", 1, ps::kSlot);
  auto all = graph.Output<int>("all", kBins, ps::kSlot), bad = graph.Output<int>("bad", kBins, ps::kSlot);
  ps::Select(graph, "bad", ps::Read(records), ps::Write(kept), ps::Write(count), IsBad{});
  graph.ParallelFor("alerts", ps::CountOf(count, n), MakeAlert{}, ps::Read(kept), ps::Write(alerts));
  graph.TransformReduce("bytes", ps::CountOf(count, n), Bytes{}, ps::Plus(), 0, ps::Read(kept), ps::Write(bytes));
  ps::Histogram(graph, "latencies", ps::Read(records), ps::Write(all), BinOf{.bad_only = false});
  ps::Histogram(graph, "bad latencies", ps::Read(records), ps::Write(bad), BinOf{.bad_only = true});
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 3, .devices = runtime.all_devices()}));

  // An item is a chunk of the log: its first record and how many it has.
  struct Chunk {
    uint64_t begin;
    int records;
  };
  ps::Stages<Chunk> stages;
  const auto read = [&](ps::Item<Chunk>& chunk) {  // into the memory that the device copies from
    const std::span<Record> to = chunk.span(records);
    for (int i = 0; i < chunk->records; ++i) to[i] = MakeRecord(chunk->begin + static_cast<uint64_t>(i));
    chunk.Set(n, chunk->records);
  };
  stages.Host("read", read, {.workers = 2});
  stages.Run("analyse", exec);
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Chunk>::Create(std::move(stages), {.on_error = ps::kFail}));

  int made = 0;
  uint64_t begin = 0;
  Findings found;
  const auto source = [&]() -> std::optional<Chunk> {
    if (made >= chunks) return std::nullopt;
    const Chunk chunk{begin, RecordsOf(made++)};
    begin += static_cast<uint64_t>(chunk.records);
    return chunk;
  };
  const auto sink = [&](ps::Item<Chunk>& chunk) {  // in the order of the log
    const absl::StatusOr<int64_t> size = chunk.count(alerts);
    if (!chunk.status().ok() || !size.ok()) return;
    const std::span<const Alert> some = chunk.span(alerts).first(static_cast<size_t>(*size));
    found.alerts.insert(found.alerts.end(), some.begin(), some.end());
    found.bytes += chunk.span(bytes)[0];
    for (int bin = 0; bin < kBins; ++bin) {
      found.all[bin] += chunk.span(all)[bin];
      found.bad[bin] += chunk.span(bad)[bin];
    }
  };
  PS_RETURN_IF_ERROR(pipe.Run(source, sink));

  std::printf("latencies in ms   records      50%%      90%%      99%%    99.9%%\n");
  Show("all", found.all);
  Show("slow or failed", found.bad);
  std::printf("%d chunks, %zu alerts, whose responses had %lld bytes\n", chunks, found.alerts.size(),
              static_cast<long long>(found.bytes));
  if (found != Expected(chunks)) return absl::InternalError("a plain loop finds something else");
  std::printf("a plain loop finds the same\n");
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string devices;
  int chunks = 40;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--devices") == 0) devices = argv[i + 1];
    if (std::strcmp(argv[i], "--chunks") == 0) chunks = std::atoi(argv[i + 1]);
  }
  const absl::Status status = Run(devices, chunks);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
