#!/usr/bin/env bash
# Fetches nanobind (from PyPI), which the Python module is built with, into the per-user cache, where CMake finds it and
# every clone shares it. Without a network: exit code 77, one line. Usage: resources/dev/nanobind.sh
set -euo pipefail
version=3.1.0 # also in app/python/CMakeLists.txt and app/python/pyproject.toml
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kvscope
home=$cache/nanobind-$version

skip() { echo "The Python module stays as it is: $1"; exit 77; }

[ ! -d "$home" ] || exit 0
mkdir -p "$cache" 2>/dev/null || skip "$cache cannot be written"
exec 9>"$cache/nanobind.lock"
flock 9
[ ! -d "$home" ] || exit 0
fresh=$home.part
rm -rf "$fresh"
if ! { python3 -m venv "$fresh/venv" && timeout 200 "$fresh/venv/bin/pip" install -q --disable-pip-version-check \
    --no-deps --target "$fresh/package" "nanobind==$version"; }; then
    rm -rf "$fresh"
    skip "pip cannot install nanobind $version"
fi
mv "$fresh/package" "$home"
rm -rf "$fresh"
