#include "src/cli/measure/chain.h"

#include <algorithm>
#include <cmath>

#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

absl::StatusOr<Chain> Chain::Make(Runtime& runtime, const Declare& declare, int nodes, CompileOptions options) {
  Graph graph("measured");
  const Bind bind = declare(graph, nodes);
  if (options.slots == 0) options.slots = 1;
  PENSTOCK_ASSIGN_OR_RETURN(Executable exec, runtime.Compile(graph, options));
  (void)exec.Decide();  // a trial of modes would end in the middle of what is timed
  Chain chain(std::move(exec), nodes);
  if (bind != nullptr) bind(chain.io_);
  return chain;
}

absl::StatusOr<Chain> Chain::Lasting(Runtime& runtime, const Declare& declare, double us, int most,
                                     const CompileOptions& options) {
  for (int nodes = 1;;) {
    PENSTOCK_ASSIGN_OR_RETURN(Chain chain, Make(runtime, declare, nodes, options));
    PENSTOCK_RETURN_IF_ERROR(chain.Time().status());  // the first run of a graph may have to upload it
    PENSTOCK_ASSIGN_OR_RETURN(const double time, chain.Time());
    if (time >= us || nodes >= most) return chain;
    const double wanted = std::max(std::ceil(nodes * us / time * 1.1), nodes * 2.0);
    nodes = static_cast<int>(std::min<double>(wanted, most));
  }
}

absl::StatusOr<double> Chain::Time() {
  const double begin = Now();
  PENSTOCK_ASSIGN_OR_RETURN(const Run run, Launch());
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  return Now() - begin;
}

}  // namespace penstock::cli::measure
