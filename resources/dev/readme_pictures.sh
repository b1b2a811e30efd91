#!/usr/bin/env bash
# Draws the README's pictures again from the sample: the window, a drag of the budget, two figures as a paper prints them.
# Look at them before they are committed. Needs img2webp (Debian package webp) beside what packages.txt lists.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v img2webp >/dev/null || { echo "img2webp is missing: apt-get install webp" >&2; exit 1; }
[ "${1:-}" = built ] || cmake --build "$root/build/release" --target kvscope window-gallery
frames=$(mktemp -d)
trap 'rm -rf "$frames"' EXIT
out=$root/resources/readme
mkdir -p "$out"
cd "$root"
xvfb-run -a -s "-screen 0 1440x900x24 +extension GLX" env LIBGL_ALWAYS_SOFTWARE=1 \
    build/release/bin/window-gallery "$frames" sample_data/needle-1k.h5 readme
img2webp -lossless -m 6 "$frames/window.png" -o "$out/window.webp" >/dev/null
img2webp -loop 0 -mixed -min_size -q 40 -m 4 -d 140 "$frames"/drag-*.png -o "$out/drag.webp" >/dev/null
plot() { build/release/bin/kvscope plot "$1" sample_data/needle-1k.h5 --layer 3 --kv-head 1 --theme paper "${@:2}"; }
plot curves --policy keydiff@0.25 --policy snapkv@0.25 --policy h2o@0.25 --policy uniform@0.25 --size 380x300 \
    --out resources/readme/curves.svg
plot key_projection --policy keydiff@0.1 --size 380x300 --out resources/readme/projection.svg
ls -l "$out"
