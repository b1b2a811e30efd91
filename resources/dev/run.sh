#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window on the sample capture. Without a display it renders the figures
# of that window into a folder and prints where. Where there is an NVIDIA GPU, or with --with-gpu, the GPU engine is
# fetched and built too (some 3 GB once, in the per-user cache). Usage: resources/dev/run.sh [--with-gpu] [CAPTURE | SESSION].
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fetch=
if [ "${1:-}" = --with-gpu ]; then
    fetch=fetch-gpu
    shift
elif [ -e /dev/nvidiactl ]; then
    fetch=fetch-gpu
fi
"$root/resources/dev/setup.sh" release "$fetch" app/all gpu/all engine-check # without the tests
kvscope=$root/build/release/bin/kvscope
capture=${1:-$root/sample_data/needle-1k.h5}

if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    exec "$kvscope" "$capture"
fi

out=$root/build/figures
mkdir -p "$out"
panes=(--policy keydiff:kvpress --policy snapkv --policy streaming_llm --retention 0.1)
where=(--layer 3 --kv-head 1)
"$kvscope" plot key_projection "$capture" "${where[@]}" "${panes[@]}" --size 1200x420 --scale 2 --theme light --out "$out/key_projection.png"
"$kvscope" plot key_projection "$capture" "${where[@]}" "${panes[@]}" --size 1200x420 --theme light --out "$out/key_projection.pdf"
"$kvscope" plot token_strip "$capture" "${where[@]}" "${panes[@]}" --size 1200x420 --scale 2 --theme light --out "$out/token_strip.png"
"$kvscope" measure "$capture" "${panes[@]}" --metrics output_error,retained_mass --out "$out/measures.csv"
echo "No display found. The figures and measures of the window are in $out:"
ls -1 "$out"
