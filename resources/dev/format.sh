#!/usr/bin/env bash
# Formats the C++ and CUDA sources by .clang-format, version 14, since other versions break lines elsewhere.
# Usage: resources/dev/format.sh [--check]: checks only and names the files that differ (exit code 1).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
formatter=$(command -v clang-format-14 || true)
[ -n "$formatter" ] || { echo "Formatting skipped: clang-format-14 is not installed"; exit 77; }
mapfile -d '' -t sources < <(find app core gpu views tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print0)
if [ "${1:-}" = --check ]; then
    printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 100 "$formatter" --dry-run -Werror
else
    printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 100 "$formatter" -i
fi
