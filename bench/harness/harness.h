// What every benchmark of this folder shares: flags, interleaved timing, medians, the Markdown table,
// the JSON file and the CSV file.
//
// A benchmark offers several ways of doing the same work, raw and with Penstock. Measure runs them in turn, one pass
// over all of them a repeat, each pass starting with another one, so that a drift of clocks or a noisy neighbour meets
// all alike. Figures are medians; the raw figure of a row is the best median of its raw ways, which favours raw.
//
// Threads: single-threaded.
// Errors:  what fails is thrown as Failure; Guard ends the program with 1 then. Bad flags end it with 2, a missed
// target
//          does not: the table says so.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bench {

struct Options {
  bool quick = false;  // a smoke run: few repeats, small counts, figures without worth
  int repeats = 31;
  int slots = 4;  // of executables that overlap with themselves
  std::string json;  // file for the figures, empty: none
  std::string csv;   // the same as a table, with the four below in every row
  std::string program, command, machine, commit;
  std::vector<std::string> parts{};  // to measure, of a program that has several: all of them unless some are named
};
// `program` and `what` are for --help; `parts` are what --parts takes, if there are any.
Options ParseOptions(int argc, char** argv, const char* program, const char* what,
                     const std::vector<std::string>& parts = {});

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void Fail(const std::string& message);
// What `program` returns; 1, and a line on stderr, where it throws.
int Guard(const std::function<int()>& program);
// Fails with the status' words unless it is OK.
void Must(const absl::Status& status);
template <class T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

using Clock = std::chrono::steady_clock;
inline double Microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// One timed run, in microseconds: until everything was submitted, and until everything was done.
struct Sample {
  double submit = 0;
  double total = 0;
};

// kRaw ways compete with kPenstock ways; kFloor is what no way can beat; kScale ways are shown for orientation only.
enum class Kind { kRaw, kPenstock, kFloor, kScale };

// `run` prepares, does the work once, checks the result (Fail) and returns the time of the work alone. Where rows of a
// report differ in what is fair to compare with, `group` tells the ways apart.
struct Way {
  Kind kind = Kind::kRaw;
  std::string name;
  std::function<Sample()> run;
  int group = 0;
  std::vector<Sample> samples{};
};

void Measure(std::vector<Way>& ways, int warm_ups, int repeats);

struct Spread {
  double median = 0, min = 0, max = 0;
};
Spread SpreadOf(std::vector<double> values);
// Of one figure of a way's samples, times `scale`.
Spread SpreadOf(const Way& way, double Sample::* figure, double scale);
// GB/s (10^9 bytes) of what moves so many bytes in so many microseconds.
Spread RateOf(const Spread& microseconds, double bytes);
// The way of that kind and group with the least median of the figure.
const Way& Best(const std::vector<Way>& ways, Kind kind, double Sample::* figure, int group = 0);
// The same of the kRaw ways.
const Way& BestRaw(const std::vector<Way>& ways, double Sample::* figure);
const Way& Find(const std::vector<Way>& ways, const std::string& name);

// "≥ 5, met"
std::string AtLeast(double value, double target);
// "≤ 5, MISSED"
std::string AtMost(double value, double target);

// The figures of one program or of a part of it, printed once they are all there.
class Report {
 public:
  explicit Report(std::string title) : title_(std::move(title)) {}

  // A sentence under the title: conditions of the measurement.
  void Note(std::string sentence) { notes_.push_back(std::move(sentence)); }
  // A row of the first table. The ratio is penstock over raw; `target` is the most it may be, 0: none.
  void Compare(const std::string& what, const std::string& unit, const Spread& raw, const Spread& penstock,
               double target);
  // The same, where penstock may be so much more than raw, in `unit`.
  void CompareSums(const std::string& what, const std::string& unit, const Spread& raw, const Spread& penstock,
                   double most_more);
  // The same in GB/s, where more is better: `at_least` is the least the ratio may be, 0: none.
  void CompareRates(const std::string& what, const Spread& raw, const Spread& penstock, double at_least);
  // A row with no raw side.
  void Alone(const std::string& what, const std::string& unit, const Spread& penstock, const std::string& target);
  // A row of the second table for each way, its figures times `scale`.
  void Details(const std::string& what, const std::string& unit, const std::vector<Way>& ways, double scale);

  // All that `part` has, behind what is here.
  void Append(const Report& part);

  // Prints why nothing was measured instead, and what was done nonetheless.
  void Skip(const std::string& why, const std::string& but) const;
  // Markdown to stdout.
  void Print() const;
  // JSON to options.json and CSV to options.csv, where they are asked for. Fails if a file cannot be written.
  void Save(const Options& options) const;
  // Both.
  void Publish(const Options& options) const;

 private:
  struct Row {
    std::string part, what, unit;  // the part is the title of the report that has measured the row
    bool has_raw;
    Spread raw, penstock;
    double ratio;
    std::string target;
  };
  struct DetailRow {
    std::string part, what, way, unit;
    Spread submit, total;
  };
  void SaveJson(const Options& options) const;
  void SaveCsv(const Options& options) const;

  std::string title_;
  std::vector<std::string> notes_;
  std::vector<Row> rows_;
  std::vector<DetailRow> details_;
};

}  // namespace bench
