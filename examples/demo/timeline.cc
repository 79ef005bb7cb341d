#include "timeline.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace {

// About a dozen frames of the fastest job, but one to three of the slowest.
double Shown(const std::vector<Job>& jobs) {
  const auto [fast, slow] = std::minmax_element(
      jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.FrameMicros() < b.FrameMicros(); });
  return std::clamp(12 * fast->FrameMicros(), 1.2 * slow->FrameMicros(), 3 * slow->FrameMicros());
}

// Where a job's timeline begins: with the frame that is decoded first after half of the job's time.
double From(const Job& job) {
  for (const Work& work : job.works[kDecode]) {
    if (work.begin >= (job.begin + job.end) / 2) return work.begin;
  }
  return job.begin;
}

}  // namespace

Job JobOf(const penstock::Trace& trace, const std::vector<int>& launched, double begin) {
  Job job;
  job.begin = begin;
  job.end = trace.Now();
  for (const penstock::Span& span : trace.spans()) {
    const Step step = span.kind == penstock::SpanKind::kUpload     ? kCopyIn
                      : span.kind == penstock::SpanKind::kKernel   ? kDenoise
                      : span.kind == penstock::SpanKind::kDownload ? kCopyOut
                      : span.name == kStepNames[kDecode]           ? kDecode
                      : span.name == kStepNames[kEncode]           ? kEncode
                                                                   : kSteps;
    if (span.begin_us < begin || step == kSteps) continue;
    const bool host = step == kDecode || step == kEncode;
    const int frame = host ? static_cast<int>(span.run) : launched[static_cast<size_t>(span.run)];
    job.works[step].push_back({frame, span.begin_us, span.end_us});
  }
  for (std::vector<Work>& works : job.works) {
    std::sort(works.begin(), works.end(), [](const Work& a, const Work& b) { return a.begin < b.begin; });
  }
  // A span begins when its stream gets there, though the engine may be at the span before.
  for (const Step step : {kCopyIn, kDenoise, kCopyOut}) {
    double free = begin;
    for (Work& work : job.works[step]) {
      work.begin = std::min(std::max(work.begin, free), work.end);
      free = std::max(free, work.end);
    }
  }
  return job;
}

double Job::Busy(Step step) const {
  double busy = 0, until = begin;
  for (const Work& work : works[step]) {
    busy += std::max(0.0, work.end - std::max(work.begin, until));
    until = std::max(until, work.end);
  }
  return busy / (end - begin);
}

double Job::FrameMicros() const {
  return (end - begin) / static_cast<double>(std::max<size_t>(1, works[kDenoise].size()));
}

std::string TimelineText(const std::vector<Job>& jobs) {
  constexpr int kColumns = 72;
  const double column = Shown(jobs) / kColumns;
  std::string text;
  for (const Job& job : jobs) {
    absl::StrAppendFormat(&text, "\n%s\n  %-9s %-*s %s\n", job.title, "", kColumns,
                          absl::StrFormat("<- %.3g ms ->", Shown(jobs) / 1000), "busy");
    for (int step = 0; step < kSteps; ++step) {
      std::string row(kColumns, '.');
      for (const Work& work : job.works[step]) {
        const double begin = (work.begin - From(job)) / column, end = (work.end - From(job)) / column;
        if (end <= 0 || begin >= kColumns) continue;
        const int first = static_cast<int>(std::max(begin, 0.0));
        const int last = std::clamp(static_cast<int>(end + 0.5), first + 1, kColumns);
        std::fill(row.begin() + first, row.begin() + last, static_cast<char>('0' + work.frame % 10));
      }
      absl::StrAppendFormat(&text, "  %-9s %s %3.0f %%\n", kStepNames[step], row,
                            100 * job.Busy(static_cast<Step>(step)));
    }
  }
  return text;
}

std::string TimelineSvg(const std::vector<Job>& jobs) {
  constexpr double kLeft = 80, kWidth = 860, kLine = 16;
  constexpr std::array<const char*, 6> kColours = {"#4878a8", "#c77a2c", "#5f9e6e", "#b55d60", "#857aab", "#8d7866"};
  const double scale = kWidth / Shown(jobs);
  double y = 10;
  std::string body;
  for (const Job& job : jobs) {
    const double from = From(job), to = from + Shown(jobs);
    absl::StrAppendFormat(&body, "<text class=\"title\" x=\"10\" y=\"%.0f\">%s</text>\n", y + 14, job.title);
    y += 24;
    for (int step = 0; step < kSteps; ++step) {
      absl::StrAppendFormat(&body, "<text x=\"10\" y=\"%.0f\">%s</text>\n", y + 12, kStepNames[step]);
      std::vector<double> lines = {from};  // when each is free again
      for (const Work& work : job.works[step]) {
        const double begin = std::max(work.begin, from), end = std::min(work.end, to);
        if (begin >= end) continue;
        auto line = std::find_if(lines.begin(), lines.end(), [&](double free) { return free <= begin; });
        if (line == lines.end()) line = lines.insert(line, from);
        *line = end;
        const double x = kLeft + (begin - from) * scale, width = std::max(1.0, (end - begin) * scale);
        const double top = y + kLine * static_cast<double>(line - lines.begin());
        absl::StrAppendFormat(&body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"15\" fill=\"%s\"/>\n", x, top,
                              width, kColours[static_cast<size_t>(work.frame) % kColours.size()]);
        if (width < 24) continue;
        absl::StrAppendFormat(&body, "<text class=\"frame\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", x + 3, top + 12,
                              work.frame);
      }
      y += kLine * static_cast<double>(lines.size()) + 5;
    }
    y += 12;
  }
  absl::StrAppendFormat(&body, "<text x=\"%.0f\" y=\"%.0f\">%.3g ms of each job; a colour is a frame</text>\n</svg>\n",
                        kLeft, y + 6, Shown(jobs) / 1000);
  return absl::StrFormat(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 950 %.0f\">\n"
             "<style>text { font: 12px Arial, \"Liberation Sans\", sans-serif; fill: #1b1f24 } "
             ".title { font-weight: bold } .frame { fill: #ffffff }</style>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
             y + 16) +
         body;
}
