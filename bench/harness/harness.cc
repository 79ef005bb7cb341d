// Flags by CLI11, JSON by nlohmann-json: here, so that the .cu files need neither.
#include "harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <initializer_list>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

// Enough digits to see a per mille, in plain notation.
std::string Number(double value) {
  char text[32];
  const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// "2.41 (2.38 to 2.60)"
std::string Text(const Spread& s) { return Number(s.median) + " (" + Number(s.min) + " to " + Number(s.max) + ")"; }

double MedianOf(const Way& way, double Sample::* figure) { return SpreadOf(way, figure, 1).median; }

nlohmann::json JsonOf(const Spread& s) { return {{"median", s.median}, {"min", s.min}, {"max", s.max}}; }

// The processor's name and the number of its cores, where the system tells them.
std::string ThisMachine() {
  std::ifstream cpus("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(cpus, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    model = line.substr(colon + 2);
    break;
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

// The command line without the options that say where figures go and what is noted with them.
std::string CommandOf(int argc, char** argv, const char* program) {
  std::string command = program;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], option = word.substr(0, word.find('='));
    if (option == "--json" || option == "--csv" || option == "--machine" || option == "--commit") {
      if (option == word) ++i;  // its value is the next word
      continue;
    }
    command += ' ' + word;
  }
  return command;
}

// A line of a CSV file (RFC 4180).
std::string CsvLine(std::initializer_list<std::string> cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty()) line += ',';
    if (cell.find_first_of(",\"\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

// Six digits: more than any clock here has.
std::string Digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

Options ParseOptions(int argc, char** argv, const char* program, const char* what,
                     const std::vector<std::string>& parts) {
  Options options;
  CLI::App app(what, program);
  app.add_flag("--quick", options.quick, "A smoke run with few repeats and small counts");
  app.add_option("--repeats", options.repeats, "Timed repeats of every way")->check(CLI::Range(1, 100000));
  app.add_option("--slots", options.slots, "Slots of executables that overlap with themselves")
      ->check(CLI::Range(1, 64));
  app.add_option("--json", options.json, "Write the figures to this file too");
  app.add_option("--csv", options.csv, "Write the figures to this file as a table");
  app.add_option("--machine", options.machine, "The machine to name in the table; the processor by default");
  app.add_option("--commit", options.commit, "The commit to name in the table");
  if (!parts.empty()) {
    app.add_option("--parts", options.parts, "What to measure, separated by commas; everything by default")
        ->delimiter(',')
        ->check(CLI::IsMember(parts));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    std::exit(code == 0 ? 0 : 2);
  }
  if (options.quick && app.count("--repeats") == 0) options.repeats = 3;
  if (options.parts.empty()) options.parts = parts;
  if (options.machine.empty()) options.machine = ThisMachine();
  options.program = program;
  options.command = CommandOf(argc, argv, program);
  return options;
}

void Fail(const std::string& message) { throw Failure(message); }

int Guard(const std::function<int()>& program) {
  try {
    return program();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAILED: %s\n", failure.what());
    return 1;
  }
}

void Must(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

void Measure(std::vector<Way>& ways, int warm_ups, int repeats) {
  for (int i = 0; i < warm_ups; ++i) {
    for (Way& way : ways) way.run();
  }
  for (int r = 0; r < repeats; ++r) {
    for (size_t i = 0; i < ways.size(); ++i) {
      Way& way = ways[(i + static_cast<size_t>(r)) % ways.size()];
      way.samples.push_back(way.run());
    }
  }
}

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back()};
}

Spread SpreadOf(const Way& way, double Sample::* figure, double scale) {
  std::vector<double> values;
  for (const Sample& sample : way.samples) values.push_back(sample.*figure * scale);
  return SpreadOf(std::move(values));
}

Spread RateOf(const Spread& microseconds, double bytes) {
  const auto rate = [&](double time) { return time > 0 ? bytes / time / 1e3 : 0; };
  return {rate(microseconds.median), rate(microseconds.max), rate(microseconds.min)};
}

const Way& Best(const std::vector<Way>& ways, Kind kind, double Sample::* figure, int group) {
  const Way* best = nullptr;
  for (const Way& way : ways) {
    if (way.kind != kind || way.group != group) continue;
    if (best == nullptr || MedianOf(way, figure) < MedianOf(*best, figure)) best = &way;
  }
  if (best == nullptr) Fail("there is no way to compare with");
  return *best;
}

const Way& BestRaw(const std::vector<Way>& ways, double Sample::* figure) { return Best(ways, Kind::kRaw, figure); }

const Way& Find(const std::vector<Way>& ways, const std::string& name) {
  for (const Way& way : ways) {
    if (way.name == name) return way;
  }
  Fail("there is no way called " + name);
}

std::string AtLeast(double value, double target) {
  return "≥ " + Number(target) + (value >= target ? ", met" : ", MISSED");
}

std::string AtMost(double value, double target) {
  return "≤ " + Number(target) + (value <= target ? ", met" : ", MISSED");
}

void Report::Compare(const std::string& what, const std::string& unit, const Spread& raw, const Spread& penstock,
                     double target) {
  const double ratio = raw.median > 0 ? penstock.median / raw.median : 0;
  rows_.push_back({title_, what, unit, true, raw, penstock, ratio, target > 0 ? AtMost(ratio, target) : "-"});
}

void Report::CompareSums(const std::string& what, const std::string& unit, const Spread& raw, const Spread& penstock,
                         double most_more) {
  const bool met = penstock.median <= raw.median + most_more;
  rows_.push_back({title_, what, unit, true, raw, penstock, raw.median > 0 ? penstock.median / raw.median : 0,
                   "≤ raw + " + Number(most_more) + " " + unit + (met ? ", met" : ", MISSED")});
}

void Report::CompareRates(const std::string& what, const Spread& raw, const Spread& penstock, double at_least) {
  const double ratio = raw.median > 0 ? penstock.median / raw.median : 0;
  rows_.push_back({title_, what, "GB/s", true, raw, penstock, ratio, at_least > 0 ? AtLeast(ratio, at_least) : "-"});
}

void Report::Alone(const std::string& what, const std::string& unit, const Spread& penstock,
                   const std::string& target) {
  rows_.push_back({title_, what, unit, false, {}, penstock, 0, target});
}

void Report::Details(const std::string& what, const std::string& unit, const std::vector<Way>& ways, double scale) {
  for (const Way& way : ways) {
    const char* mark = way.kind == Kind::kScale ? " (for scale)" : way.kind == Kind::kFloor ? " (floor)" : "";
    details_.push_back({title_, what, way.name + mark, unit, SpreadOf(way, &Sample::submit, scale),
                        SpreadOf(way, &Sample::total, scale)});
  }
}

void Report::Append(const Report& part) {
  notes_.insert(notes_.end(), part.notes_.begin(), part.notes_.end());
  rows_.insert(rows_.end(), part.rows_.begin(), part.rows_.end());
  details_.insert(details_.end(), part.details_.begin(), part.details_.end());
}

void Report::Print() const {
  std::printf("## %s\n\n", title_.c_str());
  for (const std::string& note : notes_) std::printf("%s\n", note.c_str());
  if (!rows_.empty()) std::printf("\n| what | raw | penstock | ratio | target |\n|---|---|---|---|---|\n");
  for (const Row& row : rows_) {
    const std::string raw = row.has_raw ? Number(row.raw.median) + " " + row.unit : "-";
    const std::string ratio = row.has_raw ? Number(row.ratio) : "-";
    std::printf("| %s | %s | %s %s | %s | %s |\n", row.what.c_str(), raw.c_str(), Number(row.penstock.median).c_str(),
                row.unit.c_str(), ratio.c_str(), row.target.c_str());
  }
  if (!details_.empty()) std::printf("\n| way | submit | until done |\n|---|---|---|\n");
  for (const DetailRow& row : details_) {
    std::printf("| %s: %s | %s %s | %s %s |\n", row.what.c_str(), row.way.c_str(), Text(row.submit).c_str(),
                row.unit.c_str(), Text(row.total).c_str(), row.unit.c_str());
  }
  std::fflush(stdout);
}

void Report::Save(const Options& options) const {
  if (!options.json.empty()) SaveJson(options);
  if (!options.csv.empty()) SaveCsv(options);
}

// Two rows where there is something to compare with, raw and Penstock; the latter has ratio, target and verdict.
void Report::SaveCsv(const Options& options) const {
  std::ofstream file(options.csv);
  file << CsvLine({"benchmark", "part", "case", "way", "metric", "unit", "value", "least", "most", "ratio", "target",
                   "verdict", "machine", "date", "command", "commit"});
  const std::string today = Today();
  const auto line = [&](const std::string& part, const std::string& what, const std::string& way,
                        const std::string& metric, const std::string& unit, const Spread& s, const std::string& ratio,
                        const std::string& target, const std::string& verdict) {
    file << CsvLine({options.program, part, what, way, metric, unit, Digits(s.median), Digits(s.min), Digits(s.max),
                     ratio, target, verdict, options.machine, today, options.command, options.commit});
  };
  for (const Row& row : rows_) {
    const size_t comma = row.target.rfind(", ");
    const std::string target = row.target == "-" ? "" : row.target.substr(0, comma);
    const std::string verdict = comma == std::string::npos            ? ""
                                : row.target.substr(comma) == ", met" ? "met"
                                                                      : "missed";
    if (row.has_raw) line(row.part, row.what, "raw", "figure", row.unit, row.raw, "", "", "");
    line(row.part, row.what, "Penstock", "figure", row.unit, row.penstock, row.has_raw ? Digits(row.ratio) : "", target,
         verdict);
  }
  for (const DetailRow& row : details_) {
    line(row.part, row.what, row.way, "submit", row.unit, row.submit, "", "", "");
    line(row.part, row.what, row.way, "until done", row.unit, row.total, "", "", "");
  }
  file.close();
  if (!file) Fail("cannot write " + options.csv);
}

void Report::SaveJson(const Options& options) const {
  nlohmann::json rows = nlohmann::json::array(), details = nlohmann::json::array();
  for (const Row& row : rows_) {
    nlohmann::json json = {
        {"what", row.what}, {"unit", row.unit}, {"penstock", JsonOf(row.penstock)}, {"target", row.target}};
    if (row.has_raw) json["raw"] = JsonOf(row.raw);
    if (row.has_raw) json["ratio"] = row.ratio;
    rows.push_back(json);
  }
  for (const DetailRow& row : details_) {
    details.push_back({{"way", row.what + ": " + row.way},
                       {"unit", row.unit},
                       {"submit", JsonOf(row.submit)},
                       {"total", JsonOf(row.total)}});
  }
  std::ofstream file(options.json);
  file << nlohmann::json{{"title", title_},        {"repeats", options.repeats},
                         {"quick", options.quick}, {"notes", notes_},
                         {"rows", rows},           {"ways", details}}
              .dump(2)
       << '\n';
  file.close();
  if (!file) Fail("cannot write " + options.json);
}

void Report::Skip(const std::string& why, const std::string& but) const {
  std::printf("## %s\n\nSkipped: %s. %s Nothing was measured.\n", title_.c_str(), why.c_str(), but.c_str());
}

void Report::Publish(const Options& options) const {
  Print();
  Save(options);
}

}  // namespace bench
