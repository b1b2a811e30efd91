#!/usr/bin/env bash
# Builds the fuzz targets with Clang, libFuzzer and the address and undefined-behaviour sanitizers, and runs each.
# Usage: resources/dev/fuzz.sh [SECONDS each] [TARGET...] (default 60 seconds, all; tests/fuzz/targets.cpp names them).
# New inputs are kept in build/fuzz/corpus, findings in build/fuzz/findings. Ends with 1 after a finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang++ >/dev/null || { echo "fuzz.sh needs Clang: apt-get install clang" >&2; exit 2; }
seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(captures sessions lists_json lists_csv calibrations specs scores safetensors npz models frames)
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${KVSCOPE_JOBS:-$(nproc)}" --target "${targets[@]/#/fuzz-}"
found=0
for target in "${targets[@]}"; do
    corpus=build/fuzz/corpus/$target findings=build/fuzz/findings/$target
    mkdir -p "$corpus" "$findings"
    seeds=(tests/fuzz/seeds/"$target")
    [ "$target" = captures ] && seeds=(sample_data/broken)
    echo "== $target"
    build/fuzz/fuzz/fuzz-"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 \
        -artifact_prefix="$findings/" -print_final_stats=1 "$corpus" "${seeds[@]}" 2>&1 | tail -n 12 || found=1
done
exit "$found"
