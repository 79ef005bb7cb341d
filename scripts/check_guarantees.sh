#!/usr/bin/env bash
# Checks that every test named in docs/guarantees.md exists, and that no row is without one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

doc=docs/guarantees.md
known=$(grep -rhoE '^TEST(_P|_F)?\([A-Za-z0-9_]+, *[A-Za-z0-9_]+\)' tests | sed -E 's/^TEST(_P|_F)?\(//; s/, */./; s/\)$//' | sort -u)
named=$(grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9_]*`' "$doc" | tr -d '`' | sort -u)
failed=0
while read -r name; do
  grep -xF -- "$name" <<<"$known" >/dev/null || { echo "$doc names $name, which is no test"; failed=1; }
done <<<"$named"
# Rows of three cells are promises.
while IFS= read -r row; do
  echo "$doc: no test in: $row"
  failed=1
done < <(grep -E '^\|([^|]*\|){3}$' "$doc" | grep -vE '^\|( promise | rule |---)' | grep -vE '`([A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9_]*|scripts/[a-z_.]+)`' || true)
[[ $failed -eq 0 ]] || exit 1
echo "$(wc -l <<<"$named") tests named in $doc exist"
