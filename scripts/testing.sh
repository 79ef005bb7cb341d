# Runs the tests of a build folder and says how they went. Sourced after common.sh.
#
# ctest runs each test program as a few processes, its shards; each leaves an XML file of GoogleTest's in tests/results/.
# What is counted here are GoogleTest's tests, and those of ctest's that are none of them (benchmarks, examples, scripts).

# A failed shard prints thousands of lines: drops those of tests that passed or were skipped, but keeps what a sanitizer
# reported during one. Of a shard that died the last "[ RUN ]" stays: that test was running.
failures_of() {
  awk '
    / Passed +[0-9.]+ sec$/ || /^ *Start +[0-9]+:/ || /\*\*\*Skipped/ { next }
    /^\[-+\]/ { next }
    /^\[       OK \]/ || /^\[  SKIPPED \]/ { if (held ~ /Sanitizer|runtime error:/) printf "%s", held; held = ""; next }
    /^\[ RUN / { printf "%s", held; held = $0 "\n"; next }
    /^\[  FAILED/ { printf "%s", held; held = "" }
    held != "" { held = held $0 "\n"; next }
    { print }
    END { printf "%s", held }' "$1"
}

# One line a test, tab-separated: outcome, seconds, name, and of a skipped one the reason.
outcomes_of() {
  local results=$1 junit=$2 test
  find "$results" -name '*.xml' -print0 | sort -z | xargs -0 -r awk '
    function value(name,  at, text) {
      at = match($0, " " name "=\"[^\"]*\"")
      if (!at) return ""
      text = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
      return text
    }
    function put() { if (test != "") print outcome "\t" seconds "\t" test "\t" reason; test = "" }
    /<testcase / {
      put()
      test = value("classname") "." value("name"); seconds = value("time"); reason = ""
      outcome = value("status") == "notrun" ? "" : "passed"
      if (outcome == "") test = ""
    }
    /<failure / { outcome = "failed" }
    /<skipped / { outcome = "skipped"; reason = value("message"); sub(/^[^&]*&#x0A;/, "", reason); sub(/&#x0A;.*/, "", reason) }
    /<\/testsuites>/ { put() }'
  # What ctest ran itself, and shards that failed without a test that did: they died, or hung.
  awk -F'"' '/<testcase / { print $2 "\t" $6 "\t" $8 }' "$junit" | while IFS=$'\t' read -r test seconds status; do
    if [[ ! -e $results/$test.xml ]]; then
      [[ $status == run ]] && echo "passed"$'\t'"$seconds"$'\t'"$test"$'\t' || echo "failed"$'\t'"$seconds"$'\t'"$test"$'\t'
    elif [[ $status != run ]] && ! grep -q '<failure ' "$results/$test.xml"; then
      echo "failed"$'\t'"$seconds"$'\t'"$test"$'\t'
    fi
  done
}

# run_tests PRESET [OPTION OF CTEST...]: the closing line goes to tests.closing of the build folder as well.
run_tests() {
  local preset=$1 code=0 at
  at=$PWD/$(folder "$preset")
  shift
  rm -rf "$at/tests/results" "$at/tests.closing"
  # Reports name functions and lines by binutils' addr2line: clang's package brings no symbolizer.
  local symbolizer=external_symbolizer_path=$(command -v addr2line || true)
  # Twice as many shards as cores: a sixth of their time goes into waiting.
  # atexit_sleep_ms: ThreadSanitizer would have each process, and each copy that a test forks, linger for a second.
  # quarantine_size_mb: what is freed is kept from use for so long. Of the 256 MB that are usual the tests, whose data are
  # small, touch fresh pages all the time, which is a tenth of their time.
  ASAN_OPTIONS="quarantine_size_mb=16 $symbolizer ${ASAN_OPTIONS:-}" UBSAN_OPTIONS="$symbolizer ${UBSAN_OPTIONS:-}" \
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp atexit_sleep_ms=50 $symbolizer ${TSAN_OPTIONS:-}" \
  timed "test $preset" with_progress "testing $preset" "$at/ctest.log" ctest --test-dir "$at" -j $((2 * jobs)) \
    --output-on-failure --no-tests=error --output-junit "$at/ctest.xml" "$@" || code=$?
  [[ $code -eq 0 ]] || failures_of "$at/ctest.log" >&2
  if [[ ! -e $at/ctest.xml ]]; then
    results+=("$preset: ctest did not finish")
    return 1
  fi
  mkdir -p "$at/tests/results"
  outcomes_of "$at/tests/results" "$at/ctest.xml" >"$at/tests.tsv"
  say "$preset: the 20 slowest tests, seconds"
  sort -t $'\t' -k 2,2gr "$at/tests.tsv" | head -n 20 | awk -F'\t' '{ printf "   %7.2f  %s\n", $2, $3 }'
  say "$preset: skipped, by reason"
  awk -F'\t' '$1 == "skipped" { ++n[$4] } END { for (reason in n) printf "   %4d  %s\n", n[reason], reason }' \
    "$at/tests.tsv" | sort -rn | head -n 20
  local total failed skipped
  total=$(wc -l <"$at/tests.tsv")
  failed=$(grep -c '^failed' "$at/tests.tsv" || true)
  skipped=$(grep -c '^skipped' "$at/tests.tsv" || true)
  [[ $code -eq 0 || $failed -gt 0 ]] || failed=1
  printf '%d%% tests passed, %d tests failed out of %d\n' $((total == 0 ? 0 : (total - failed) * 100 / total)) "$failed" \
    "$total" >"$at/tests.closing"
  results+=("$preset: $(cat "$at/tests.closing"), $skipped skipped")
  say "${results[-1]}"
  [[ $failed -eq 0 ]] || { code=1; awk -F'\t' '$1 == "failed" { print "   FAILED " $3 }' "$at/tests.tsv"; }
  return "$code"
}
