#!/usr/bin/env bash
# Installs what is missing, builds and runs all tests, the window tests under a virtual display.
# Usage: resources/dev/test.sh [PRESET] [ctest arguments] (default release; asan and tsan run the sanitizers).
# `resources/dev/test.sh long` runs what takes hours instead (tests/README.md).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=release
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    preset=$1
    shift
fi
build=$preset
if [ "$preset" = long ]; then
    build=release
    export KVSCOPE_SOAK_MINUTES=${KVSCOPE_SOAK_MINUTES-30} KVSCOPE_KILLS=${KVSCOPE_KILLS-200}
    export KVSCOPE_SLIDER_MOVES=${KVSCOPE_SLIDER_MOVES-10000}
    export KVSCOPE_SCALE_TOKENS=${KVSCOPE_SCALE_TOKENS-1048576}
fi
# The LibTorch engine is tested on the CPU; the thread sanitizer cannot follow it and does without.
"$root/resources/dev/setup.sh" "$build" "$([ "$preset" = tsan ] || echo fetch)"
cd "$root"
# Software OpenGL draws the same picture on every machine.
export LIBGL_ALWAYS_SOFTWARE=1
exec xvfb-run --auto-servernum --server-args="-screen 0 1440x900x24 +extension GLX" \
    ctest --preset "$preset" --parallel 2 "$@"
