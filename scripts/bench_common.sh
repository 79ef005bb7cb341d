# Shared by ./run bench and gpu_bench.sh: collects the figures of benchmarks in bench/results. Sourced from the project's
# root; needs nothing but bash and the usual tools, as gpu_bench.sh must.

csv_columns=benchmark,part,case,way,metric,unit,value,least,most,ratio,target,verdict,machine,date,command,commit

# kind_of BENCHMARK: the folder of bench/results for it. These five measure host devices, wherever they run.
kind_of() {
  case $1 in
    plan | growth | declare_again | flow_graph | host_algorithms) echo host ;;
    *) echo gpu ;;
  esac
}

# csv_cell TEXT: the text as a cell of a CSV file.
csv_cell() { printf '"%s"' "${1//\"/\"\"}"; }

# append_figures CSV FILE: adds the rows of CSV, which begins with a header, to FILE.
append_figures() {
  local csv=$1 file=$2
  [[ -s $csv ]] || return 0
  if [[ $(head -n 1 "$csv") != "$csv_columns" ]]; then
    echo "$csv has other columns than $csv_columns" >&2
    return 1
  fi
  mkdir -p "$(dirname "$file")"
  [[ -s $file ]] || echo "$csv_columns" >"$file"
  tail -n +2 "$csv" >>"$file"
}
