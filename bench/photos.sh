#!/usr/bin/env bash
# Measures the photo job on this machine's GPUs and prints a Markdown table:
#   - how much of the copy time is hidden when every photograph is preloaded and the blur passes are chosen so that
#     kernels take as long as copies (median over processes), and
#   - images a second of the whole job against what its workers could reach if they never waited: W workers, c seconds of
#     their CPU time an image, in one run of at least 10 s; with half the cores as workers, and with all but two.
# The numbers are those of the table that photos prints at its end; its results are checked against its reference first,
# and each preloaded run checks its later passes against its first.
#
#   photos.sh [--quick] [--devices LIST] [--runs N] [--json FILE] [--csv FILE] [--machine TEXT] [--commit HASH] [PHOTOS FOLDER]
#
# --csv writes the figures as a table with the columns of all benchmarks, in which machine and commit are named.
#
# PHOTOS is the program, FOLDER the photographs; by default where the bundle has them, beside this script's folder.
# Exit codes: 0 done or skipped, 1 a run failed or its results are wrong, 2 bad usage.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
quick='' devices='' runs=31 json='' csv='' machine='' commit='' rest=()
usage() { echo "photos.sh: $1; see the head of the script" >&2; exit 2; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --quick) quick=1; shift ;;
    --devices | --runs | --json | --csv | --machine | --commit)
      [[ $# -ge 2 ]] || usage "$1 needs a value"
      declare "${1#--}=$2"; shift 2 ;;
    -*) usage "unknown option '$1'" ;;
    *) rest+=("$1"); shift ;;
  esac
done
[[ ${#rest[@]} -eq 0 || ${#rest[@]} -eq 2 ]] || usage "give both PHOTOS and FOLDER, or neither"
if [[ -z $devices && ! -e /dev/nvidiactl && ! -e /dev/dxg ]]; then
  printf '## The photo job\n\nSkipped: no NVIDIA GPU here. Nothing was measured.\n'
  exit 0
fi
photos=${rest[0]:-$here/../examples/photos} folder=${rest[1]:-$here/../photos}
[[ -x $photos && -d $folder ]] || usage "no program $photos, or no folder $folder"
[[ -z $quick ]] || runs=1

work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) # in memory: the job is measured, not the disk
trap 'rm -rf "$work"' EXIT
device_flags=()
[[ -z $devices ]] || device_flags=(--devices "$devices")

# job LOG FLAG...: one run; its table goes to LOG.
job() {
  local log=$1
  shift
  mkdir -p "$work/out"
  if ! "$photos" "$folder" "$work/out" --compare 0 "${device_flags[@]}" "$@" >"$log" 2>"$log.err"; then
    echo "photos failed with: $*" >&2
    tail -n 20 "$log" "$log.err" >&2
    exit 1
  fi
}
# cell LOG LABEL N: the N-th number in the row of a run's table.
cell() {
  awk -v label="$2" -v n="$3" '
    { name = substr($0, 1, 24); sub(/ +$/, "", name) }
    name == label {
      text = substr($0, 25); gsub(/[^0-9.]+/, " ", text); split(text, number, " "); print number[n]; found = 1; exit
    }
    END { if (!found) exit 1 }' "$1" || { echo "photos printed no row '$2'" >&2; exit 1; }
}
calculate() { awk "BEGIN { printf \"%.6g\", ($1) }"; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", (b > 0 ? a / b : 0) }'; }
# spread: "median least most" of the numbers on stdin.
spread() {
  sort -g | awk '{ v[NR] = $1 } END {
    printf "%.6g %.6g %.6g", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR] }'
}
verdict() { awk -v value="$1" -v least="$2" 'BEGIN { print (value >= least ? "met" : "MISSED") }'; }

passes=${quick:+2}
passes=${passes:-1000}

# preloaded BLUR SLOTS: one run; sets compute, up and down, in seconds. (No subshell: a failure must end the script.)
# Four workers are plenty where nothing is decoded and only the first pass is encoded.
preloaded() {
  job "$work/preload.log" --preload --blur "$1" --slots "$2" --workers 4 --repeat "$passes"
  compute=$(cell "$work/preload.log" compute 1)
  up=$(cell "$work/preload.log" H2D 1)
  down=$(cell "$work/preload.log" D2H 1)
}

# blur_for EXPRESSION: sets blur to the passes that make kernels as long as the expression of u (uploads) and d
# (downloads) says, and `balance` to kernel over copy time with them. Kernel time is linear in the passes. Measured with
# one slot: where nothing overlaps, nothing takes longer than it must.
blur_for() {
  local few
  preloaded 1 1
  few=$compute
  preloaded 17 1
  blur=$(awk -v few="$few" -v many="$compute" -v u="$up" -v d="$down" "BEGIN {
    k = many > few ? 1 + (($1) - few) * 16 / (many - few) : 1
    k = int(k + 0.5); print (k < 0 ? 0 : k > 1000 ? 1000 : k) }")
  preloaded "$blur" 1
  balance=$(ratio "$compute" "$(calculate "$up + $down")")
}

# hidden N: N preloaded runs with `blur`; sets `share` to the spread of the hidden share.
hidden() {
  local i
  : >"$work/shares"
  for ((i = 0; i < $1; ++i)); do
    preloaded "$blur" 12
    cell "$work/preload.log" 'copy time hidden' 1 >>"$work/shares"
  done
  share=$(spread <"$work/shares")
}

job "$work/verify.log" --verify --blur 3

few_runs=$(((runs + 4) / 5))
blur_for 'u + d'
hidden "$runs"
both_blur=$blur
read -r both_median both_least both_most <<<"$share"
both_balance=$balance
blur_for 'u'
hidden "$few_runs"
up_blur=$blur
read -r up_median up_least up_most <<<"$share"
up_balance=$balance

# whole WORKERS: the whole job, long enough: a short run says how many passes that takes. Sets what the table says.
whole() {
  local least_seconds=${quick:+0} repeat=${quick:+1}
  least_seconds=${least_seconds:-10}
  repeat=${repeat:-8}
  while :; do
    job "$work/whole.log" --repeat "$repeat" --workers "$1"
    seconds=$(cell "$work/whole.log" seconds 1)
    [[ $(calculate "$seconds < $least_seconds") == 1 ]] || break
    repeat=$(calculate "int($repeat * $least_seconds * 1.2 / ($seconds > 0.01 ? $seconds : 0.01)) + 1")
  done
  rate=$(cell "$work/whole.log" 'images a second' 1)
  cpu_ms=$(cell "$work/whole.log" 'worker CPU, of bound' 1)
  of_bound=$(cell "$work/whole.log" 'worker CPU, of bound' 2)
  images=$(cell "$work/whole.log" images 1)
  bound=$(ratio "$(calculate "100 * $rate")" "$of_bound")
}

cores=$(nproc)
most_workers=$((cores > 3 ? cores - 2 : 1)) half_workers=$((cores > 3 ? cores / 2 : 1))
whole "$most_workers"
most_rate=$rate most_bound=$bound most_ratio=$(calculate "$of_bound / 100")
most_row="| whole job, $most_workers workers of $cores cores, images a second | $bound | $rate | $(calculate "$of_bound / 100") | - |"
whole "$half_workers"

cat <<TABLE
## The photo job

Hidden share: medians of $runs and $few_runs preloaded runs of $passes passes. Whole job: runs of at least 10 s; with $half_workers workers $images images in $seconds s, $cpu_ms ms of worker CPU time an image. Raw is the workers' bound W / c.

| what | raw | penstock | ratio | target |
|---|---|---|---|---|
| copy time hidden, kernels as long as both copies (blur $both_blur; kernels / copies = $both_balance) | - | $both_median % ($both_least to $both_most) | - | ≥ 90 %, $(verdict "$both_median" 90) |
| copy time hidden, kernels as long as the uploads (blur $up_blur; kernels / copies = $up_balance) | - | $up_median % ($up_least to $up_most) | - | - |
| whole job, $half_workers workers of $cores cores, images a second | $bound | $rate | $(calculate "$of_bound / 100") | ≥ 0.95, $(verdict "$of_bound" 95) |
$most_row
TABLE
if [[ -n $json ]]; then
  cat >"$json" <<JSON
{"title": "The photo job", "quick": ${quick:-0}, "runs": $runs,
 "hidden_percent": {"median": $both_median, "min": $both_least, "max": $both_most, "blur": $both_blur, "balance": $both_balance},
 "hidden_percent_uploads": {"median": $up_median, "min": $up_least, "max": $up_most, "blur": $up_blur, "balance": $up_balance},
 "whole": {"workers": $half_workers, "images": $images, "seconds": $seconds, "images_per_second": $rate, "worker_cpu_ms": $cpu_ms, "bound": $bound}}
JSON
fi
if [[ -n $csv ]]; then
  # row CASE WAY UNIT VALUE LEAST MOST RATIO TARGET VERDICT
  row() {
    printf 'photos,The photo job,"%s",%s,figure,%s,%s,%s,%s,%s,%s,%s,"%s",%s,photos.sh --runs %d,%s\n' "$1" "$2" "$3" \
      "$4" "$5" "$6" "$7" "$8" "$9" "${machine//\"/\"\"}" "$(date -u +%F)" "$runs" "$commit"
  }
  met() { verdict "$1" "$2" | sed 's/MISSED/missed/'; }
  {
    echo benchmark,part,case,way,metric,unit,value,least,most,ratio,target,verdict,machine,date,command,commit
    row "copy time hidden, kernels as long as both copies (blur $both_blur; kernels / copies = $both_balance)" Penstock % \
      "$both_median" "$both_least" "$both_most" '' '≥ 90 %' "$(met "$both_median" 90)"
    row "copy time hidden, kernels as long as the uploads (blur $up_blur; kernels / copies = $up_balance)" Penstock % \
      "$up_median" "$up_least" "$up_most" '' '' ''
    row "whole job, $half_workers workers of $cores cores, images a second" raw images/s "$bound" '' '' '' '' ''
    row "whole job, $half_workers workers of $cores cores, images a second" Penstock images/s "$rate" '' '' \
      "$(calculate "$of_bound / 100")" '≥ 0.95' "$(met "$of_bound" 95)"
    row "whole job, $most_workers workers of $cores cores, images a second" raw images/s "$most_bound" '' '' '' '' ''
    row "whole job, $most_workers workers of $cores cores, images a second" Penstock images/s "$most_rate" '' '' \
      "$most_ratio" '' ''
  } >"$csv"
fi
