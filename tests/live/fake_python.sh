#!/bin/sh
# A python3 for the test of Help > Try it live, which installs nothing. An environment that it makes has a copy of it.
# MODE: what goes wrong. FAKE_FOLDER gets a line of `calls` for every process and is what FAKE_WORKER, run by
# REAL_PYTHON, serves.
PATH=/usr/bin:/bin
echo "$*" >>"$FAKE_FOLDER/calls"
tools=$(dirname "$0")/tools
case "$*" in
*find_spec*) [ -e "$tools" ] ;;
*ensurepip*)
    [ "$MODE" != old ] || { echo 3.9; exit 3; }
    echo 3.11
    [ "$MODE" != bare ] || { echo "ModuleNotFoundError: No module named 'ensurepip'"; exit 1; } ;;
*"-m venv"*)
    for to; do :; done
    mkdir -p "$to/bin" && cp "$0" "$to/bin/python" ;;
*"pip install"*)
    case $MODE in
    offline) echo "NewConnectionError: [Errno -3] Temporary failure in name resolution"
        echo "ERROR: Could not find a version that satisfies the requirement h5py"; exit 1 ;;
    full) echo "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"; exit 1 ;;
    odd) echo "ERROR: Package 'kvscope-tools' requires a different Python"; exit 1 ;;
    slow) echo "Downloading torch-2.9-cp311.whl (184.1 MB)"; echo $$ >"$FAKE_FOLDER/pip"; exec sleep 900 ;;
    esac
    touch "$tools" ;;
*kvscope_live*) exec "$REAL_PYTHON" -S "$FAKE_WORKER" right "$FAKE_FOLDER" ;;
esac
