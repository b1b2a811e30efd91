#!/usr/bin/env bash
# Builds the fuzz targets with Clang, libFuzzer and the address and undefined-behaviour sanitizers, and runs each, as
# many at a time as there are processors.
# Usage: resources/dev/fuzz.sh [SECONDS each] [TARGET...] (default 60 seconds, all; tests/fuzz/CMakeLists.txt names them).
# New inputs are kept in build/fuzz/corpus, findings in build/fuzz/findings. After a finding, prints what was
# reported and the input if it is small, and ends with 1.
# KVSCOPE_FUZZ_SEED repeats a run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(captures sessions lists_json lists_csv calibrations specs scores safetensors npz models frames)
resources/dev/setup.sh fuzz "" "${targets[@]/#/fuzz-}"

fuzz_one() {
    local target=$1 seeds=tests/fuzz/seeds/$1 corpus=build/fuzz/corpus/$1 findings=build/fuzz/findings/$1
    [ "$target" != captures ] || seeds=sample_data/broken
    mkdir -p "$corpus" "$findings"
    local log=build/fuzz/$target.log status=0
    build/fuzz/fuzz/fuzz-"$target" -seed="${KVSCOPE_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 \
        -artifact_prefix="$findings/" -print_final_stats=1 "$corpus" "$seeds" >"$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
    else
        echo "$target: a finding, in $findings:"
        local input text
        input=$(sed -n 's/.*Test unit written to //p' "$log")
        if [ -f "$input" ] && text=$(gzip -9 <"$input" | base64 -w 0) && [ ${#text} -le 65536 ]; then
            echo "base64 -d <<<$text | gunzip >$(basename "$input")"
        fi
        sed -nE '/==[0-9]+== ?ERROR|runtime error:/,$p' "$log" | grep . || tail -n 40 "$log"
        return 1
    fi
}
export -f fuzz_one
export seconds UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LSAN_OPTIONS=suppressions=tests/support/lsan.supp
printf '%s\n' "${targets[@]}" | xargs -P "${KVSCOPE_JOBS:-$(nproc)}" -I '{}' bash -c 'fuzz_one {}'
