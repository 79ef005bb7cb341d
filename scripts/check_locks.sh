#!/usr/bin/env bash
# Checks that docs/threading.md names every lock and every atomic of graph/ and src/, and none that is gone: the first
# column of its tables "Locks" and "Atomics". A member goes by `Class::name`, a variable of a file by `file.cc: name`.
# And that the locks of the standard library stay inside src/base/mutex.h.
#
#   scripts/check_locks.sh [ROOT]     ROOT: the project (default), or another tree laid out like it
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

# The class is the last one that was opened above, at a lower indentation.
in_source() {
  find graph src -type f \( -name '*.h' -o -name '*.cc' \) -print0 | sort -z | xargs -0 -r awk -v of="$1" '
    FNR == 1 { depth = 0 }
    /^ *(class|struct) / && /\{ *$/ {
      match($0, /^ */); at = RLENGTH
      name = $0; sub(/^ *(class|struct) (ABSL_[A-Z_]+ )?/, "", name); sub(/[^A-Za-z0-9_:].*/, "", name)
      while (depth > 0 && indent[depth] >= at) --depth
      indent[++depth] = at; class[depth] = name
    }
    /^\}/ { depth = 0 }
    {
      line = $0; sub(/\/\/.*/, "", line); sub(/alignas\([A-Za-z]+\) /, "", line)
      lock = line ~ /^ *((static|mutable|inline) )*((penstock::)?base::)?Mutex [a-z_]+( ABSL_[A-Z_]+\(.*\))?;/
      atomic = line ~ /^ *((static|mutable|inline|constinit) )*(std::vector<)?(std::atomic|Atomic|base::atomic)<.*> +[a-z_]+[^()]*;/
      if (!(of == "locks" ? lock : atomic)) next
      names = line
      sub(/^ */, "", names)
      if (lock) { sub(/^.*Mutex /, "", names); sub(/[ ;].*/, "", names) }
      else { sub(/^.*> +/, "", names); sub(/;.*/, "", names); gsub(/\{[^}]*\}/, "", names); gsub(/ /, "", names) }
      count = split(names, each, ",")
      match($0, /^ */)
      while (depth > 0 && indent[depth] >= RLENGTH) --depth
      file = FILENAME; sub(/.*\//, "", file)
      for (i = 1; i <= count; ++i) {
        if (depth > 0 && line !~ /static /) print class[depth] "::" each[i]
        else print file ": " each[i]
      }
    }' | sort -u
}

# The names in backticks of the first column of the table under the heading.
in_doc() {
  awk -v heading="## $1" '
    /^## / { inside = $0 == heading }
    inside && /^\| `/ { split($0, column, "|"); text = column[2]; while (match(text, /`[^`]*`/)) {
      print substr(text, RSTART + 1, RLENGTH - 2); text = substr(text, RSTART + RLENGTH) } }' docs/threading.md | sort -u
}

bad=0
if grep -rnE 'std::((recursive_|shared_|timed_)*mutex|condition_variable)' graph src --include='*.h' --include='*.cc' |
   grep -v '^src/base/mutex\.h:'; then
  echo "only src/base/mutex.h has the locks of the standard library; use base::Mutex and base::CondVar"
  bad=1
fi
if grep -rnE '(std::atomic|\bAtomic)<' graph src --include='*.h' --include='*.cc' |
   grep -vE ':[0-9]+: *(alignas\([A-Za-z]+\) )?((static|mutable|inline|constinit) )*(std::vector<)?(std::atomic|Atomic)<[^&]*> +[a-z_]+|//.*tomic<|tomic<[^>]*>+ *[&*]'; then
  echo "such an atomic cannot be read by this script; declare it in a line of its own"
  bad=1
fi
for kind in Locks Atomics; do
  source=$(in_source "${kind,,}") doc=$(in_doc "$kind")
  [[ -n $source ]] || { echo "no ${kind,,} found in graph/ and src/: the search is broken"; exit 1; }
  missing=$(comm -23 <(echo "$source") <(echo "$doc")) gone=$(comm -13 <(echo "$source") <(echo "$doc"))
  [[ -z $missing ]] || { echo "not in docs/threading.md, table '$kind':"; echo "$missing"; bad=1; }
  [[ -z $gone ]] || { echo "in docs/threading.md, table '$kind', but not in the sources:"; echo "$gone"; bad=1; }
  echo "$(wc -l <<<"$source") ${kind,,}"
done
exit "$bad"
