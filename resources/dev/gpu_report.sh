#!/usr/bin/env bash
# Measures the GPU engine on the machine at hand: fetches LibTorch with its CUDA libraries and nvcc where they are missing,
# builds the engines alone (no Qt, HDF5 or display), and writes one report: every primitive against its oracle, kept
# lists CPU = CUDA on random heads, times, and compute-sanitizer on small cases. Nothing is measured without a GPU.
# Usage: resources/dev/gpu_report.sh [FOLDER] (default build/gpu_report). KVSCOPE_REPORT_ENGINE=torch tries the script out
# on the CPU.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${1:-$root/build/gpu_report}
engine=${KVSCOPE_REPORT_ENGINE:-cuda}
rows=${KVSCOPE_REPORT_ROWS:-4096,16384,65536}
bench=${KVSCOPE_REPORT_BENCH:-*speed*}
mkdir -p "$out"
report=$out/report.txt

if [ "$engine" = cuda ] && ! { [ -e /dev/nvidiactl ] && nvidia-smi >/dev/null 2>&1; }; then
    echo "No NVIDIA GPU here: nothing was measured. The script is ready; run it where nvidia-smi answers."
    exit 77
fi

"$root/resources/dev/libtorch.sh" "$([ "$engine" = cuda ] && echo fetch-gpu || echo fetch)"
CUDACXX=${CUDACXX:-$("$root/resources/dev/cuda_toolkit.sh")}
export CUDACXX
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
cmake -S "$root" -B "$out/build" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DKVSCOPE_ENGINES_ONLY=ON \
    ${KVSCOPE_REPORT_CMAKE:-} >"$out/configure.log"
grep -E "LibTorch|CUDA kernels" "$out/configure.log" || true
cmake --build "$out/build" -j "${KVSCOPE_JOBS:-$(nproc)}" >"$out/build.log"
check=$out/build/bin/engine-check

# Every part is run, whatever the others did; the report says which failed.
failed=0
part() {
    local title=$1
    shift
    { echo; echo "== $title"; echo "\$ ${*/#$root\//}"; } >>"$report"
    echo "$title"
    if ! "$@" >>"$report" 2>&1; then
        echo "FAILED: $title" | tee -a "$report"
        failed=1
    fi
}

{
    echo "KVScope GPU report, $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo 'not a clone')"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit --format=csv 2>/dev/null ||
        echo "no GPU: engine $engine"
} >"$report"
part "Primitives against their oracles" "$check" test --engine "$engine"
part "Kept lists against the CPU engine, random heads" "$check" parity --engine "$engine" --rows "$rows"
part "Speed, exact" "$check" bench --engine "$engine" --case "$bench"
part "Speed, fast" "$check" bench --engine "$engine-fast" --case "$bench"
kernels=$out/build/bin/gpu-check
if [ "$engine" = cuda ] && [ -x "$kernels" ]; then # the kernels by themselves, without LibTorch
    part "Kernels against their oracles" "$kernels" test
    part "Kernels: kept lists against the CPU engine" "$kernels" parity --tokens ${rows//,/ }
    part "Kernels: time, share of bandwidth and matrix rate" "$kernels" bench
fi
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$CUDACXX")/compute-sanitizer" 2>/dev/null || true)
if [ "$engine" = cuda ] && [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do # LibTorch's own kernels are left out
        part "compute-sanitizer $tool, small cases" "$sanitizer" --tool "$tool" --error-exitcode 9 \
            "$kernels" test
    done
else
    echo "compute-sanitizer was not run: $([ -n "$sanitizer" ] && echo 'no GPU' || echo 'it is not installed')" >>"$report"
fi
echo "Report: $report"
exit $failed
