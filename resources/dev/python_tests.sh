#!/usr/bin/env bash
# Checks the format and the types of resources/python and tests it, at both ends of the supported range of Transformers.
# The environment (torch and all, some 5 GB) lies in a per-user cache and is shared by every clone with the same
# requirements. Where it cannot be installed: exit code 77 and one line. KVSCOPE_PYTHON=skip does the same at once.
# Usage: resources/dev/python_tests.sh [newest | oldest | style | papers [FILE] | moves | reference | environment]
# (default: the first four). environment makes the environment alone. moves is the live worker under
# KVSCOPE_SLIDER_MOVES moves of a slider.
# papers compares what the program writes with loops from the papers' text (tests/papers), in one file or in all.
# reference compares with kvpress itself; its environment is made only when KVSCOPE_REFERENCE=install asks for it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/resources/python

skip() { echo "Python tests skipped: $1"; exit 77; }

[ "${KVSCOPE_PYTHON:-}" != skip ] || skip "KVSCOPE_PYTHON=skip"
key=$(cat "$tools/requirements-test.txt" "$tools/requirements-oldest.txt" | sha256sum | cut -c1-12)
home=${XDG_CACHE_HOME:-$HOME/.cache}/kvscope/python-$key
mkdir -p "$home" 2>/dev/null || skip "$home cannot be written"

# One installer at a time, which holds the lock (descriptor 9) until the function returns. One marker file says that an
# environment is whole, another that an attempt to make it failed within the last hour.
install_environment() {
    flock 9
    [ ! -e "$home/whole" ] || return 0
    [ -z "$(find "$home" -maxdepth 1 -name unavailable -mmin -60)" ] || return 1
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || return 1
    echo "Installing the Python test environment into $home"
    rm -rf "$home/venv"
    python3 -m venv "$home/venv" &&
        timeout 900 "$home/venv/bin/pip" install -q --disable-pip-version-check -r "$tools/requirements-test.txt" &&
        touch "$home/whole" && return 0
    touch "$home/unavailable"
    return 1
}
install_environment 9>"$home/lock" >>"$home/log" 2>&1 || skip "pip cannot install resources/python/requirements-test.txt (log: $home/log)"

part=${1:-all}
# The reference's own packages; a .pth file adds those of the other environment, so that torch is not installed twice.
install_reference() {
    flock 9
    [ ! -e "$home/reference/whole" ] || return 0
    rm -rf "$home/reference"
    "$home/venv/bin/python" -m venv "$home/reference" || return 1
    ls -d "$home"/venv/lib/python3*/site-packages >"$(ls -d "$home"/reference/lib/python3*/site-packages)/base.pth"
    timeout 900 "$home/reference/bin/pip" install -q --disable-pip-version-check -r "$tools/requirements-reference.txt" &&
        touch "$home/reference/whole"
}
if [ "$part" = reference ]; then
    [ -e "$home/reference/whole" ] || [ "${KVSCOPE_REFERENCE:-}" = install ] ||
        skip "kvpress 0.5.5 is not installed; KVSCOPE_REFERENCE=install resources/dev/python_tests.sh reference does it"
    install_reference 9>"$home/lock" >>"$home/log" 2>&1 || skip "pip cannot install resources/python/requirements-reference.txt (log: $home/log)"
fi

install_oldest() {
    flock 9
    [ ! -e "$home/oldest/whole" ] || return 0
    rm -rf "$home/oldest"
    timeout 200 "$home/venv/bin/pip" install -q --disable-pip-version-check --target "$home/oldest" -r "$tools/requirements-oldest.txt" &&
        touch "$home/oldest/whole"
}
if [ "$part" = oldest ] || [ "$part" = all ]; then
    install_oldest 9>"$home/lock" >>"$home/log" 2>&1 || skip "pip cannot install resources/python/requirements-oldest.txt (log: $home/log)"
fi

cd "$tools"
export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1
[ ! -x "$root/build/release/bin/kvscope" ] || export KVSCOPE_PROGRAM=${KVSCOPE_PROGRAM:-$root/build/release/bin/kvscope}
[ ! -d "$root/build/release/python" ] || export PYTHONPATH=$root/build/release/python${PYTHONPATH:+:$PYTHONPATH}
if [ "$part" = style ] || [ "$part" = all ]; then
    "$home/venv/bin/ruff" check --no-cache . ../../sample_data ../../tests/papers ../../tests/python ../../app/python
    "$home/venv/bin/ruff" format --no-cache --check . ../../sample_data ../../tests/papers ../../tests/python ../../app/python
    "$home/venv/bin/mypy" --cache-dir "$home/mypy"
fi
if [ "$part" = newest ] || [ "$part" = all ]; then
    "$home/venv/bin/python" -m pytest -q -rs -p no:cacheprovider
fi
if [ "$part" = oldest ] || [ "$part" = all ]; then
    # The tests of what depends on Transformers' internals, and of presses, since kvpress needs this version.
    PYTHONPATH=$home/oldest${PYTHONPATH:+:$PYTHONPATH} "$home/venv/bin/python" -m pytest -q -rs -p no:cacheprovider \
        tests/test_architectures.py tests/test_capture_file.py tests/test_check_press.py tests/test_describe.py \
        tests/test_live.py tests/test_live_exact.py tests/test_live_importance.py tests/test_live_speed.py \
        tests/test_live_traps.py tests/test_mixed_models.py tests/test_press.py tests/test_scores.py
fi
if [ "$part" = moves ]; then
    "$home/venv/bin/python" -m pytest -q -p no:cacheprovider tests/test_live_worker.py -k slider
fi
if [ "$part" = papers ] || [ "$part" = all ]; then
    [ -n "${KVSCOPE_PROGRAM:-}" ] || skip "the program is not built"
    OPENBLAS_NUM_THREADS=1 "$home/venv/bin/python" -m pytest -q -p no:cacheprovider -c pyproject.toml \
        --rootdir "$root/tests/papers" "$root/tests/papers/${2:-}"
fi
if [ "$part" = reference ]; then
    export OMP_NUM_THREADS=1 TQDM_DISABLE=1
    PYTHONPATH=$tools "$home/reference/bin/python" -m pytest -q -rs -p no:cacheprovider reference
fi
