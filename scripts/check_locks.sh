#!/usr/bin/env bash
# Checks the locks and atomics of graph/ and src/ where they are declared, and the lock order where it is documented:
#
# - The locks of the standard library stay inside src/base/mutex.h.
# - Each atomic has a comment that says what it is for: on its line, or in the line above.
# - Each lock has such a comment, or members that ABSL_GUARDED_BY says it guards.
# - docs/explanation/threads.md, "Lock order", names each lock, and none that is gone: a member as `Class::name`, a
#   variable of a file as `file.cc: name`.
#
#   scripts/check_locks.sh [ROOT]     ROOT: the project (default), or another tree laid out like it
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
page=docs/explanation/threads.md

# One line a name: the place, the name, and whether the declaration explains itself. The class is the last one that was
# opened above, at a lower indentation.
in_source() {
  find graph src -type f \( -name '*.h' -o -name '*.cc' \) -print0 | sort -z | xargs -0 -r awk -v of="$1" '
    function put_file(  i) {
      for (i = 1; i <= found; ++i) print at_line[i] "\t" name_of[i] "\t" (said[i] || lock_of[i] in guards ? "said" : "unsaid")
      found = 0
      delete guards
    }
    FNR == 1 { put_file(); depth = 0; above = "" }
    { for (text = $0; match(text, /ABSL_(PT_)?GUARDED_BY\([A-Za-z_]+\)/); text = substr(text, RSTART + RLENGTH)) {
        guard = substr(text, RSTART, RLENGTH); sub(/.*\(/, "", guard); sub(/\)/, "", guard); guards[guard] = 1 } }
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
      said_here = $0 ~ /\/\/ *[^ ]/ || above ~ /^ *\/\/ *[^ ]/
      above = $0
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
        ++found
        at_line[found] = FILENAME ":" FNR
        name_of[found] = depth > 0 && line !~ /static / ? class[depth] "::" each[i] : file ": " each[i]
        lock_of[found] = lock ? each[i] : ""
        said[found] = said_here
      }
    }
    END { put_file() }'
}

# The names of the section, in backticks: those with :: or of a file.
in_page() {
  awk '/^## / { inside = $0 == "## Lock order" } inside' "$page" | grep -oE '`[A-Za-z0-9_:]+::[a-z_]+`|`[a-z_]+\.(h|cc): [a-z_]+`' |
    tr -d '`' | sort -u
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
for kind in locks atomics; do
  source=$(in_source "$kind")
  [[ -n $source ]] || { echo "no $kind found in graph/ and src/: the search is broken"; exit 1; }
  unsaid=$(awk -F'\t' '$3 == "unsaid" { print $1 ": " $2 }' <<<"$source")
  [[ -z $unsaid ]] || { echo "$kind without a comment that says what they are for, on the line or the one above:"; echo "$unsaid"; bad=1; }
  echo "$(wc -l <<<"$source") $kind"
done
source=$(in_source locks | cut -f 2 | sort -u) named=$(in_page || true)
missing=$(comm -23 <(echo "$source") <(echo "$named")) gone=$(comm -13 <(echo "$source") <(echo "$named"))
[[ -z $missing ]] || { echo "not in $page, 'Lock order':"; echo "$missing"; bad=1; }
[[ -z ${gone//$'\n'/} ]] || { echo "in $page, 'Lock order', but not in the sources:"; echo "$gone"; bad=1; }
exit "$bad"
