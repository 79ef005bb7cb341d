#!/usr/bin/env bash
# Holds README.md to the program it shows: its C++ is examples/saxpy/saxpy.cc, which is built.
#
#   readme_test.sh ROOT      ROOT: the project
set -euo pipefail

diff <(sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$1/README.md") "$1/examples/saxpy/saxpy.cc"
