#!/usr/bin/env bash
# Measures the GPU engine on the machine at hand and writes one report: every primitive against its oracle in exact and fast
# arithmetic, kept lists CPU = CUDA, times against the targets, compute-sanitizer. Nothing is measured without a GPU.
# Builds the engines alone (no Qt, HDF5 or display). What a missing library switches off is named, and the rest goes on:
# with nvcc, g++ and cmake alone the kernels are checked and timed by themselves. No network is needed where LibTorch is
# installed (KVSCOPE_LIBTORCH=/path of site-packages or of an unpacked LibTorch; else python3's torch is taken) and
# nvcc too; what is missing is fetched unless KVSCOPE_TORCH=skip.
# Usage: resources/dev/gpu_report.sh [FOLDER] [PART...]   (default build/gpu_report, all parts)
#   test      primitives and kernels against their oracles      parity    kept lists against the CPU engine
#   bench     times, shares of the device's rates, targets      sanitize  memcheck, synccheck, initcheck, racecheck on small cases
#   pack DIR  on a machine with apt: fetches the Debian packages of the engines into DIR, for one without a network,
#             where KVSCOPE_DEBS=DIR unpacks them (nothing is installed)
# Engines are strict: a call that fails on the GPU fails its case and is not repeated on the CPU; cases whose primitive has
# no code for the GPU are named "ran on the CPU engine". Rows are float, bfloat16 and half in every part.
# Every run has its own time limit (KVSCOPE_REPORT_SECONDS, default 500; a part is several runs), and the report is written
# as it goes. KVSCOPE_REPORT_ENGINE=torch tries the script out on the CPU.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
debian=(libeigen3-dev libspectra-dev libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libfmt-dev libfmt9 libcli11-dev)
if [ "${1:-}" = pack ]; then
    mkdir -p "${2:?pack needs a folder}" && cd "$2" && apt-get -q download "${debian[@]}" && ls -1
    exit
fi

out=$root/build/gpu_report
if [ $# -gt 0 ] && [[ ! $1 =~ ^(test|parity|bench|sanitize)$ ]]; then
    out=$1
    shift
fi
parts=${*:-test parity bench sanitize}
for name in $parts; do
    [[ $name =~ ^(test|parity|bench|sanitize)$ ]] || { echo "There is no part '$name': test, parity, bench, sanitize" >&2; exit 2; }
done
engine=${KVSCOPE_REPORT_ENGINE:-cuda}
rows=${KVSCOPE_REPORT_ROWS:-4096,16384,65536}
cases=${KVSCOPE_REPORT_BENCH:-*speed*}
limit=${KVSCOPE_REPORT_SECONDS:-500}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
report=$out/report.txt
failed=0

say() { echo "$*" | tee -a "$report"; }
wanted() { [[ " $parts " == *" $1 "* ]]; }

if [ "$engine" = cuda ] && ! nvidia-smi >/dev/null 2>&1; then
    echo "No NVIDIA GPU here: nothing was measured. The script is ready; run it where nvidia-smi answers."
    exit 77
fi
{
    echo "KVScope GPU report, $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo 'not a clone'), parts: $parts"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit --format=csv 2>/dev/null ||
        echo "no GPU: engine $engine"
} >"$report"

# Prints the folder of a named LibTorch or of python3's own; else, without CMAKE_PREFIX_PATH, fetches one for CMake.
libtorch() {
    if [ -n "${KVSCOPE_LIBTORCH:-}" ]; then
        echo "$KVSCOPE_LIBTORCH"
    elif place=$(timeout 120 python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' 2>/dev/null); then
        echo "$place"
    elif [ -z "${CMAKE_PREFIX_PATH:-}" ]; then
        "$root/resources/dev/libtorch.sh" "$([ "$engine" = cuda ] && echo fetch-gpu || echo fetch)" >&2
    fi
}

build() {
    local prefix torch generator options=(-DCMAKE_BUILD_TYPE=Release -DKVSCOPE_ENGINES_ONLY=ON -DKVSCOPE_WARNINGS_AS_ERRORS=OFF)
    torch=$(libtorch 2> >(tee -a "$report" >&2))
    prefix=${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//:/;};}${torch:+$torch;}
    if [ -n "${KVSCOPE_DEBS:-}" ]; then
        for package in "$KVSCOPE_DEBS"/*.deb; do dpkg -x "$package" "$out/debs" || return 1; done
        prefix+="$out/debs/usr;"
        options+=(-DCMAKE_LIBRARY_ARCHITECTURE="$(uname -m)-linux-gnu")
    fi
    [ -z "$prefix" ] || options+=("-DCMAKE_PREFIX_PATH=$prefix")
    CUDACXX=${CUDACXX:-$("$root/resources/dev/cuda_toolkit.sh")} && export CUDACXX || { unset CUDACXX; say "nvcc is missing and could not be fetched"; }
    # The one architecture of this machine, as the driver names it ("9.0").
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')
    [[ ! $capability =~ ^[0-9]+$ ]] || options+=("-DKVSCOPE_CUDA_ARCHITECTURES=$capability")
    generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
    # shellcheck disable=SC2086
    timeout "$limit" cmake -S "$root" -B "$out/build" -G "$generator" "${options[@]}" ${KVSCOPE_REPORT_CMAKE:-} >"$out/configure.log" 2>&1 || {
        say "FAILED: configuring (configure.log ends so)"
        tail -20 "$out/configure.log" | tee -a "$report"
        return 1
    }
    grep -E "LibTorch|CUDA kernels|Missing" "$out/configure.log" | tee -a "$report"
    timeout "$limit" cmake --build "$out/build" -j "${KVSCOPE_JOBS:-$(nproc)}" -- -k$([ "$generator" = Ninja ] && echo 0) >"$out/build.log" 2>&1 || {
        say "FAILED: a part of the build, or its time limit (build.log names it)"
        grep -E "error|FAILED" "$out/build.log" | head -20 | tee -a "$report"
        failed=1
    }
}

# Runs one program under the limit, whatever the others did; the report says how it ended.
run() {
    local title=$1 status
    shift
    { echo; echo "== $title"; echo "\$ ${*//$root\//}"; } >>"$report"
    echo "$title"
    if [ ! -x "$1" ] && ! command -v "$1" >/dev/null; then
        say "LEFT OUT: $(basename "$1") was not built"
        return 1
    fi
    timeout -k 10 "$limit" stdbuf -oL "$@" >>"$report" 2>&1
    status=$?
    case $status in
    0) return 0 ;;
    77) say "LEFT OUT: $title" ;;
    124 | 137) say "STOPPED after $limit s: $title"; failed=1 ;;
    *) say "FAILED ($status): $title"; failed=1 ;;
    esac
    return 1
}

build || failed=1
check=$out/build/bin/engine-check
kernels=$out/build/bin/gpu-check
if wanted test; then
    [ "$engine" != cuda ] || run "Kernels against their oracles, exact and fast" "$kernels" test
    run "Primitives against their oracles, exact" "$check" test --engine "$engine"
    run "Primitives against their oracles, fast" "$check" test --engine "$engine-fast"
fi
if wanted parity; then
    [ "$engine" != cuda ] || run "Kernels: kept lists against the CPU engine" "$kernels" parity --tokens "$rows"
    run "Kept lists against the CPU engine, random heads" "$check" parity --engine "$engine" --rows "$rows"
fi
if wanted bench; then
    if [ "$engine" = cuda ]; then
        run "PyTorch on the same GPU" python3 "$root/tests/bench/gpu_check/flash_attention.py"
        run "kvpress on the same GPU (PYTHONPATH finds it)" python3 "$root/tests/bench/gpu_check/peers.py"
        flash=$(sed -n 's/^flash attention forward.*: \([0-9.]*\) ms$/\1/p' "$report" | tail -1)
        run "Kernels: time, shares of the device's rates, targets" "$kernels" bench ${flash:+--flash-ms "$flash"}
    fi
    run "Speed of the engine, exact" "$check" bench --engine "$engine" --case "$cases"
    run "Speed of the engine, fast" "$check" bench --engine "$engine-fast" --case "$cases"
fi
if wanted sanitize; then
    sanitizer=$(command -v compute-sanitizer || ls "$(dirname "${CUDACXX:-/nowhere/nvcc}")/compute-sanitizer" 2>/dev/null)
    if [ "$engine" = cuda ] && [ -n "$sanitizer" ]; then
        for tool in memcheck synccheck initcheck racecheck; do # LibTorch's own kernels are left out
            run "compute-sanitizer $tool, small cases" "$sanitizer" --tool "$tool" --error-exitcode 9 "$kernels" test
        done
    else
        say "compute-sanitizer was not run: $([ -n "$sanitizer" ] && echo 'no GPU' || echo 'it is not installed')"
    fi
fi
echo "Report: $report"
exit $failed
