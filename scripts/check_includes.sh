#!/usr/bin/env bash
# Checks who includes whom: the layers of docs/explanation/overview.md; and who starts threads. Prints each offending
# line with the rule it breaks.
#
#   scripts/check_includes.sh [ROOT]     ROOT: the project (default), or another tree laid out like it
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

folders=()
for folder in include graph src examples bench tests; do [[ ! -d $folder ]] || folders+=("$folder"); done

# A file belongs to the first layer whose pattern fits its path. `own` is which of the project's headers it may include
# with quotes; includes of other libraries are judged by the rules below it.
find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
  xargs -0 -r awk '
  function layer(path, own) {
    rule = ""
    if (path ~ /^include\//)            { own = "penstock/";                                       rule = "include/ includes only include/" }
    else if (path ~ /^graph\/common\//)    { own = graph "common/";                                rule = "graph/common includes src/base and include/" }
    else if (path ~ /^graph\/plan\//)      { own = graph "(common|plan)/";                         rule = "graph/plan includes graph/common, src/base and include/" }
    else if (path ~ /^graph\/conflicts\//) { own = graph "(common|plan|conflicts)/";               rule = "graph/conflicts includes graph/common, graph/plan, src/base and include/" }
    else if (path ~ /^graph\/formula\//)  { own = graph "(common|formula)/";                         rule = "graph/formula includes graph/common, src/base and include/" }
    else if (path ~ /^graph\/control\//)   { own = graph "(common|control)/";                         rule = "graph/control includes graph/common, src/base and include/" }
    else if (path ~ /^graph\/simulate\//) { own = graph "(common|plan|simulate)/";                  rule = "graph/simulate includes graph/common, graph/plan, src/base and include/" }
    else if (path ~ /^graph\/place\//)    { own = graph "(common|plan|conflicts|passes|simulate|place)/"; rule = "graph/place includes graph/common, graph/plan, graph/conflicts, graph/passes, graph/simulate, src/base and include/" }
    else if (path ~ /^graph\/declare\//) { own = graph "(common|plan|conflicts|formula|declare)/"; rule = "graph/declare includes graph/common, graph/plan, graph/conflicts, graph/formula, src/base and include/" }
    else if (path ~ /^graph\/passes\//)  { own = graph "(common|plan|conflicts|passes)/";          rule = "graph/passes includes graph/common, graph/plan, graph/conflicts, src/base and include/" }
    else if (path ~ /^graph\/(checks|memory)\//)  { split(path, part, "/"); own = graph "(common|plan|conflicts|passes|" part[2] ")/"; rule = "graph/" part[2] " includes graph/common, graph/plan, graph/conflicts, graph/passes, src/base and include/" }
    else if (path ~ /^graph\//)         { own = "penstock/|graph/|src/base/";                      rule = "graph/ includes graph/, include/ and src/base" }
    else if (path ~ /^src\/base\//)     { own = "penstock/|src/base/";                             rule = "src/base includes only include/" }
    else if (path ~ /^src\/host\//)     { own = "penstock/|src/base/|src/host/";                   rule = "src/host includes src/base and include/" }
    else if (path ~ /^src\/jit\//)      { own = "penstock/|src/base/|src/jit/";                    rule = "src/jit includes src/base and include/" }
    else if (path ~ /^src\/observe\//)  { own = "penstock/|src/base/|src/observe/";                rule = "src/observe includes src/base and include/" }
    else if (path ~ /^src\/tune\//)     { own = "penstock/|graph/common/|src/(base|tune)/";       rule = "src/tune includes graph/common, src/base and include/" }
    else if (path ~ /^src\/driver\/host\//) { own = "penstock/|src/base/|src/host/event_count\\.h|src/driver/(driver|copy_box|fill_box|node_op|conditional_rules|hostcall_slot|loop_kernels|timestamp)\\.h|src/driver/host/"; rule = "src/driver/host includes the seam, src/base, src/host/event_count.h and include/" }
    else if (path ~ /^src\/driver\/cuda\//) { own = "penstock/|src/base/|src/host/event_count\\.h|src/driver/(driver|copy_box|copy_piece|fill_box|node_op|conditional_rules|hostcall_slot|loop_kernels|region_limits|timestamp)\\.h|src/driver/cuda/"; rule = "src/driver/cuda includes the seam, src/base, src/host/event_count.h and include/" }
    else if (path ~ /^src\/driver\/sim\//) { own = "penstock/|graph/(common|plan|simulate)/|src/base/|src/host/event_count\\.h|src/driver/driver\\.h|src/driver/(host|sim)/"; rule = "src/driver/sim includes the seam, src/driver/host, graph/simulate, src/base, src/host/event_count.h and include/" }
    else if (path ~ /^src\/driver\//)   { own = "penstock/|src/base/|src/host/event_count\\.h|src/driver/"; rule = "src/driver includes src/base, src/host/event_count.h and include/" }
    else if (path ~ /^src\/memory\//)   { own = "penstock/|src/base/|src/host/(event_count|progress)\\.h|src/driver/(driver|copy_box|current_device)\\.h|src/memory/"; rule = "src/memory includes the seam, src/base, waiting (src/host/event_count.h, progress.h) and include/" }
    else if (path ~ /^src\/runtime\//) {
      split(path, part, "/")
      room = part[3]
      if (!(room in below)) { own = "nothing"; rule = "src/runtime has the rooms named in scripts/check_includes.sh" }
      else {
        own = "penstock/|graph/|src/(base|host|jit|observe|tune|driver|memory)/|src/runtime/(" room (below[room] == "" ? "" : "|" below[room]) ")/"
        rule = "src/runtime/" room " includes no room but " (below[room] == "" ? "itself" : "itself and " below[room])
      }
    }
    else if (path ~ /^src\/analysis\//) { own = "penstock/|graph/(common|plan|simulate|place)/|src/(base|tune|analysis)/"; rule = "src/analysis includes graph/common, graph/plan, graph/simulate, graph/place, src/base, src/tune and include/" }
    else if (path ~ /^src\/cli\//)      { own = "penstock/|graph/(common|plan|simulate|place)/|src/(base|jit|observe|tune|analysis|cli)/"; rule = "src/cli includes what src/analysis does, src/jit, src/observe, src/tune and src/analysis" }
    else if (path ~ /^src\//)           { own = "penstock/|graph/|src/";                           rule = "src/ includes nothing of examples, bench and tests" }
    else if (path ~ /^bench\/(plan|growth)\.cc$/) { own = "penstock/|graph/|bench/";                  rule = "bench/plan.cc and growth.cc include graph/, include/ and its own folder" }
    else if (path ~ /^bench\/simulated\//) { own = "penstock/|graph/simulate/|src/analysis/|bench/";     rule = "bench/simulated includes graph/simulate/, src/analysis/, include/ and bench/" }
    else if (path ~ /^(examples|bench)\//) { split(path, part, "/"); own = "penstock/|" part[1] "/"; rule = "examples and bench include only include/ and their own folder" }
    else                                { own = ".*" }
    return own
  }
  BEGIN {
    library = "^include/penstock/(cublas|cusolver|cufft)\\.h$"  # the public headers for libraries of CUDA
    graph = "penstock/|src/base/|graph/"
    # The rooms of src/runtime, lowest first: what each may include besides itself and what lies under the runtime.
    below["core"] = ""
    below["program"] = ""
    below["state"] = "core"
    below["slot"] = "core|program|state"
    below["calls"] = below["slot"] "|slot"
    below["graph_exec"] = below["calls"] "|calls"
    below["run"] = below["graph_exec"] "|graph_exec"
    below["executable"] = below["run"] "|run"
    below["pipeline"] = below["cache"] = below["executable"] "|executable"
    below["api"] = below["pipeline"] "|pipeline|cache"
  }
  function offend(why) { printf "%s:%d: %s\n    %s\n", FILENAME, FNR, why, $0; bad = 1 }

  FNR == 1 { own = layer(FILENAME) }
  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    quoted = $0 ~ /include[ \t]*"/
    name = $0
    sub(/^[^<"]*[<"]/, "", name)
    sub(/[>"].*$/, "", name)

    # Our own headers: by quotes and a path from include/ or the root of the project; beside an example or a benchmark,
    # and in tests, a file of the same folder may go by its bare name.
    if (quoted && name !~ /\//) {
      if (FILENAME !~ /^(examples|bench|tests)\//) offend("a header of ours goes by its path from the root or include/")
    } else if (name ~ /^(penstock|graph|src|examples|bench|tests)\// && name !~ ("^(" own ")")) {
      offend(rule)
    }
    if (name ~ /\.\.\//) offend("no include goes upwards")

    cuda = name ~ /^(cuda|cub\/|thrust\/|nv|cooperative_groups|cublas|cusolver|cufft|driver_types|vector_types|device_launch)/
    if (cuda && FILENAME !~ /^src\/driver\/cuda\// && FILENAME !~ /^tests\/.*cuda/ && FILENAME !~ /cuda[^\/]*$/ && FILENAME !~ library && FILENAME !~ /\.cuh?$/)
      offend("CUDA headers only in src/driver/cuda/, in *cuda* files and in .cu files")
    if (FILENAME ~ /^include\// && cuda && FILENAME !~ /cuda[^\/]*\.h$/ && FILENAME !~ library)
      offend("a public header with CUDA in it has cuda, or the name of a library of CUDA, in its name")
    if ((name ~ /^penstock\/.*cuda/ || "include/" name ~ library) && FILENAME ~ /^(graph|src)\// && FILENAME !~ /^src\/driver\/cuda\//)
      offend("of graph/ and src/, only src/driver/cuda/ includes public CUDA headers")
    if (name ~ /^(spdlog|fmt)\// && FILENAME != "src/base/log.cc")
      offend("spdlog and fmt only in src/base/log.cc")
    if (name ~ /^hwloc/ && FILENAME != "src/memory/topology.cc")
      offend("hwloc only in src/memory/topology.cc")
    if (name ~ /^(nlohmann|CLI)\// && FILENAME !~ /^(examples|bench|tests|src\/cli)\//)
      offend("nlohmann-json and CLI11 only in programs and tests")
    if (name ~ /^(gtest|gmock)\// && FILENAME !~ /(^|\/)tests\//)
      offend("GoogleTest only in tests")
    if (FILENAME ~ /^include\// && name ~ /^absl\// && name !~ /^absl\/(status\/status(or)?|strings\/cord)\.h$/)
      offend("public headers take only Status and StatusOr (and the Cord of its payload) from Abseil")
    if (FILENAME ~ /^graph\// && name ~ /^(thread|mutex|condition_variable|future|chrono|semaphore|latch|barrier)$/)
      offend("graph/ knows no thread and no clock")
  }
  # Threads of the library begin in one place, which sees to their signals.
  FILENAME ~ /^src\// && FILENAME !~ /^src\/base\/thread\./ {
    code = $0
    sub(/\/\/.*/, "", code)
    if (code ~ /std::thread( [a-z_]+)?[({]|std::jthread|std::async|pthread_create|(threads?|joinable)_?\.emplace_back\(/)
      offend("threads are started by base::StartThread (src/base/thread.h)")
  }
  END { exit bad }
' || { echo "the include directions are broken"; exit 1; }
echo "include directions hold"
