#!/usr/bin/env bash
# Checks what a shared library of ours exports: its SONAME, and no symbol but those of namespace penstock. Weak symbols
# of the C++ library and of Abseil, and the names of types that are made of built-in ones, are instances every user of
# those has; anything else has leaked.
#
#   scripts/check_exports.sh libpenstock.so VERSION
set -euo pipefail

library=$1 version=$2
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[[ $soname == "libpenstock.so.$version" ]] || { echo "SONAME is '$soname', not libpenstock.so.$version"; exit 1; }

nm -D -C --defined-only "$library" | awk '
  { kind = $2; name = $0; sub(/^[^ ]+ [^ ]+ /, "", name) }
  name ~ /spdlog|fmt::|cuda|nlohmann|CLI::|testing::/ { print "leaked: " $0; bad = 1; next }
  kind ~ /^[VWu]$/ && name ~ /(^| |<)(std|absl|__gnu_cxx|operator)/ { next }
  kind ~ /^[VWu]$/ && name ~ /^typeinfo (name )?for (void|bool|char|int|long|float|double) *[(*]/ { next }
  name ~ /^((non-)?virtual thunk to |typeinfo (name )?for |vtable for |guard variable for )?penstock::/ {
    exported++
    if (name ~ /^[^(]*penstock::(graph|base|driver|host|memory|runtime|observe)::/) { print "internal, but exported: " $0; bad = 1 }
    next
  }
  { print "not ours, but exported: " $0; bad = 1 }
  END {
    if (!exported) { print "exports nothing of namespace penstock"; bad = 1 }
    if (!bad) print exported " symbols exported, all of namespace penstock"
    exit bad
  }'
