// Sums and wording.
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

namespace photos {
namespace {

constexpr std::array<const char*, kSteps> kStepNames = {"decode", "H2D", "compute", "D2H", "encode"};
constexpr double kNano = 1e-9;

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::array<StepTotal, kSteps> SumSteps(const Measurement& measurement) {
  std::array<StepTotal, kSteps> steps;
  std::array<std::vector<Interval>, kSteps> times;
  double all = 0;
  for (const Span& span : measurement.spans) {
    const auto step = static_cast<size_t>(span.step);
    const double seconds = kNano * static_cast<double>(std::max<int64_t>(0, span.time.end - span.time.begin));
    steps[step].seconds += seconds;
    all += seconds;
    times[step].push_back(span.time);
  }
  for (size_t i = 0; i < kSteps; ++i) {
    steps[i].share = Ratio(steps[i].seconds, all);
    steps[i].busy =
        Ratio(static_cast<double>(Length(Normalize(std::move(times[i])))), static_cast<double>(measurement.traced_ns));
  }
  return steps;
}

// A copy hides only behind work of its own device.
double HiddenShare(const std::vector<Span>& spans) {
  std::map<int, std::array<std::vector<Interval>, kSteps>> devices;
  for (const Span& span : spans) devices[span.device][static_cast<size_t>(span.step)].push_back(span.time);
  CopyTime sum;
  for (auto& entry : devices) {
    auto set = [&entry](Step step) { return Normalize(std::move(entry.second[static_cast<size_t>(step)])); };
    const CopyTime copies = MeasureCopies({set(Step::kUpload), set(Step::kDownload), set(Step::kCompute)});
    sum.total += copies.total;
    sum.exposed += copies.exposed;
  }
  return sum.hidden_share();
}

std::string Format(const char* format, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

constexpr int kLabelWidth = 24;
constexpr int kColumnWidth = 30;

std::string Row(const std::string& label, const std::vector<Column>& columns,
                const std::function<std::string(const Column&)>& cell) {
  std::string row = Format("%-*s", kLabelWidth, label.c_str());
  for (const Column& column : columns) row += Format("%*s", kColumnWidth, cell(column).c_str());
  return row + "\n";
}

std::string StepRow(size_t step, const std::vector<Column>& columns) {
  return Row(kStepNames[step], columns, [step](const Column& column) {
    const StepTotal& total = column.summary.steps[step];
    return Format("%.3f s  %5.1f %%  %5.1f %%", total.seconds, 100 * total.share, 100 * total.busy);
  });
}

std::string WorkerCell(const Column& column) {
  const Summary& s = column.summary;
  return Format("%.2f ms, %.1f %%", 1e3 * s.worker_cpu_per_image, 100 * Ratio(s.images_per_second, s.worker_bound));
}

std::string Legend(const std::vector<Column>& columns) {
  std::string legend =
      "\nsum: seconds over all threads or engines; share: of the five sums; busy: of the run's time, at least one at "
      "it.\n"
      "copy time hidden: beside a kernel or the opposite copy of its device.\n"
      "worker CPU: of decoding and encoding an image; the bound is workers / that, in images a second.\n";
  for (const Column& column : columns) {
    const Summary& s = column.summary;
    if (s.traced_images == s.images) continue;
    legend += Format("%s: the steps are those of its first %lld images.\n", column.title.c_str(),
                     static_cast<long long>(s.traced_images));
  }
  return legend;
}

}  // namespace

Summary Summarize(const Measurement& m) {
  Summary s;
  s.images = m.images;
  s.traced_images = m.traced_images;
  s.workers = m.workers;
  s.megabytes_up = 1e-6 * static_cast<double>(m.bytes_up);
  s.megabytes_down = 1e-6 * static_cast<double>(m.bytes_down);
  s.seconds = kNano * static_cast<double>(m.wall_ns);
  s.steps = SumSteps(m);
  s.hidden_share = HiddenShare(m.spans);
  s.images_per_second = Ratio(static_cast<double>(m.images), s.seconds);
  s.worker_cpu_per_image = Ratio(kNano * static_cast<double>(m.worker_cpu_ns), static_cast<double>(m.images));
  s.worker_bound = Ratio(m.workers, s.worker_cpu_per_image);
  return s;
}

std::string FormatTable(const std::vector<Column>& columns) {
  std::string table = Row("", columns, [](const Column& c) { return c.title; });
  table +=
      Row("images", columns, [](const Column& c) { return Format("%lld", static_cast<long long>(c.summary.images)); });
  table += Row("workers", columns, [](const Column& c) { return Format("%d", c.summary.workers); });
  table += Row("MB up, down", columns,
               [](const Column& c) { return Format("%.1f, %.1f", c.summary.megabytes_up, c.summary.megabytes_down); });
  table += Row("seconds", columns, [](const Column& c) { return Format("%.3f s", c.summary.seconds); });
  table += Row("", columns, [](const Column&) { return std::string("sum    share     busy"); });
  for (size_t step = 0; step < kSteps; ++step) table += StepRow(step, columns);
  table +=
      Row("copy time hidden", columns, [](const Column& c) { return Format("%.1f %%", 100 * c.summary.hidden_share); });
  table += Row("worker CPU, of bound", columns, WorkerCell);
  table += Row("images a second", columns, [](const Column& c) { return Format("%.1f", c.summary.images_per_second); });
  if (columns.size() == 2) {
    const double ratio = Ratio(columns[0].summary.images_per_second, columns[1].summary.images_per_second);
    table += Format("%-*s%*.2f\n", kLabelWidth, "ratio", kColumnWidth, ratio);
  }
  return table + Legend(columns);
}

std::string FormatProgress(int64_t done, int64_t total, int64_t skipped, double seconds) {
  std::string line = Format("%lld/%lld images", static_cast<long long>(done), static_cast<long long>(total));
  if (skipped > 0) line += Format(", %lld skipped", static_cast<long long>(skipped));
  if (seconds > 0) line += Format(", %.1f images/s", static_cast<double>(done) / seconds);
  return line;
}

}  // namespace photos
