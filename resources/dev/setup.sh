#!/usr/bin/env bash
# Installs the Debian packages of packages.txt (and packages_PRESET.txt) that are missing, fetches nanobind and, when
# told to, LibTorch and the environment of the Python tests, then configures and builds.
# Asks no questions. Usage: resources/dev/setup.sh [PRESET] [fetch | fetch-gpu | ""] [TARGET...]
# (default release, fetches nothing, builds everything).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=${1:-release}
torch=${2:-}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=() optional=()
while read -r name _; do
    case $name in
        '' | \#*) ;;
        *\?) installed "${name%\?}" || optional+=("${name%\?}") ;;
        *) installed "$name" || missing+=("$name") ;;
    esac
done < <(cat "$root/resources/dev/packages.txt" "$root/resources/dev/packages_$preset.txt" 2>/dev/null)

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
if [ ${#missing[@]} -gt 0 ]; then
    echo "Installing: ${missing[*]}"
    { "${as_root[@]}" apt-get update -qq && install "${missing[@]}"; } ||
        { echo "Not root and no sudo, or no network. Install these packages first: ${missing[*]}" >&2; exit 1; }
fi
# One by one, without stopping at a failure: the build can do without these, and some are part of another package here.
for name in "${optional[@]}"; do
    [ -z "$(apt-cache madison "$name" || true)" ] || install "$name" || echo "Left out: $name, which could not be installed"
done

"$root/resources/dev/nanobind.sh" || [ $? -eq 77 ]
# What cannot be fetched switches its engine off; everything else builds.
if [ -n "$torch" ]; then
    "$root/resources/dev/libtorch.sh" "$torch" || [ $? -eq 77 ]
fi
# Downloaded while the compiler works; the tests wait for it.
if [ "$torch" = fetch ] && [ "$preset" = release ]; then
    "$root/resources/dev/python_tests.sh" environment >/dev/null 2>&1 &
fi
# Kernels are compiled where none can run, so that they keep compiling. Sanitizer builds run them on the emulated device.
if [ -n "$torch" ] && [ "$preset" != asan ]; then
    "$root/resources/dev/cuda_toolkit.sh" >/dev/null || echo "The CUDA kernels stay off: nvcc could not be fetched"
fi

cd "$root"
export KVSCOPE_COMPILER_LAUNCHER=${KVSCOPE_COMPILER_LAUNCHER-ccache}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
configured=$(cmake --preset "$preset") # errors go to stderr and end the script
grep -E "LibTorch|CUDA kernels" <<<"$configured" || true
targets=("${@:3}")
cmake --build --preset "$preset" -j "${KVSCOPE_JOBS:-$(nproc)}" ${targets[0]:+--target "${targets[@]}"}
