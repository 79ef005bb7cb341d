// Cookbook: a value that is read every k steps of a simulation, which goes on meanwhile.
//
// docs/howto/cookbook/watch.md explains the program.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <span>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kN = 1 << 16, kParts = 256;
constexpr int kSteps = 200, kEvery = 50;

struct Move {
  PS_HOST_DEVICE void operator()(int64_t i, const double* velocity, double* position) const {
    position[i] += velocity[i];
  }
};
struct Add {
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<const double> from, ps::View<double> to) const {
    double sum = 0;
    for (int64_t j = i; j < from.width; j += to.width) sum += from(j);
    to(i) = sum;
  }
};

// A report that is under way: the run that computes it, and where it puts it.
struct Report {
  int step = 0;
  ps::HostBuffer<double> sum;
  ps::Run run;
};
absl::Status Show(const Report& report) {
  PS_RETURN_IF_ERROR(report.run.Wait());
  std::printf("after %d steps the positions add up to %.0f\n", report.step, report.sum[0]);
  // Each velocity is i % 4, so 1.5 in the mean.
  return report.sum[0] == 1.5 * kN * report.step ? absl::OkStatus() : absl::InternalError("the sum is wrong");
}

absl::Status Cookbook() {
  std::vector<double> initial(kN);
  for (int64_t i = 0; i < kN; ++i) initial[i] = static_cast<double>(i % 4);
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(auto velocity, runtime.MakeState<double>("velocity", kN, initial));
  PS_ASSIGN_OR_RETURN(auto position, runtime.MakeState<double>("position", kN));

  ps::Graph step("step");
  step.ParallelFor("move", kN, Move{}, ps::Read(velocity), ps::ReadWrite(position));
  PS_ASSIGN_OR_RETURN(ps::Executable stepper, runtime.Compile(step, {.slots = 4}));

  ps::Graph report("report");
  auto parts = report.Buffer<double>("parts", kParts);
  auto sum = report.Output<double>("sum", 1, ps::kPinned);
  report.ParallelFor("parts", kParts, Add{}, ps::Read(position), ps::Write(parts));
  report.ParallelFor("sum", 1, Add{}, ps::Read(parts), ps::Write(sum));
  PS_ASSIGN_OR_RETURN(ps::Executable reporter, runtime.Compile(report));

  ps::Bindings out = reporter.bindings();
  std::deque<Report> reports;
  for (int s = 1; s <= kSteps; ++s) {
    PS_RETURN_IF_ERROR(stepper.Launch().status());
    if (s % kEvery == 0) {
      PS_ASSIGN_OR_RETURN(ps::HostBuffer<double> memory, runtime.MakeHostBuffer<double>(1));
      PS_ASSIGN_OR_RETURN(ps::Run run, reporter.Launch(out.Set(sum, memory)));
      reports.push_back({s, std::move(memory), run});
    }
    for (; !reports.empty() && reports.front().run.done(); reports.pop_front()) {
      PS_RETURN_IF_ERROR(Show(reports.front()));
    }
  }
  for (const Report& last : reports) PS_RETURN_IF_ERROR(Show(last));
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
