#!/usr/bin/env bash
# Fetches LibTorch (the PyPI wheel torch 2.11.0) into the per-user cache, where CMake finds it and every clone shares it.
# An environment of the Python tests with the same version is used as it is. Without a network: exit code 77, one line.
# Usage: resources/dev/libtorch.sh [fetch | fetch-gpu] (default fetch; fetch-gpu adds the CUDA libraries, 2.7 GB).
# KVSCOPE_TORCH=skip: exit code 77 at once.
set -euo pipefail
version=2.11.0
kind=${1:-fetch}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kvscope
home=$cache/libtorch-$version

skip() { echo "The torch and cuda engines stay as they are: $1"; exit 77; }

# A folder like site-packages that holds LibTorch, with the libraries that the engine on a GPU needs.
holds() {
    [ -e "$1/torch/lib/libtorch_cpu.so" ] && [ -e "$1/torch/include/ATen/core/Tensor.h" ] &&
        { [ "$kind" != fetch-gpu ] || [ -e "$1/nvidia/cu13/lib/libcublas.so.13" ]; } &&
        grep -q "'$version" "$1/torch/version.py"
}

[ "${KVSCOPE_TORCH:-}" != skip ] || skip "KVSCOPE_TORCH=skip"
mkdir -p "$cache" 2>/dev/null || skip "$cache cannot be written"
exec 9>"$cache/libtorch.lock"
flock 9
! holds "$home" || exit 0

for shared in "$cache"/python-*/venv/lib/python3*/site-packages; do
    if holds "$shared" && [ -e "${shared%/venv/*}/whole" ] && { [ -L "$home" ] || [ ! -e "$home" ]; }; then
        ln -sfn "$shared" "$home"
        exit 0
    fi
done

[ -z "$(find "$cache" -maxdepth 1 -name "libtorch-$version.unavailable" -mmin -60)" ] || skip "pip could not fetch torch $version within the hour"
python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' || skip "python3 with venv is missing"
echo "Fetching LibTorch $version into $home"
fresh=$home.part
rm -rf "$fresh" "$home"
python3 -m venv "$fresh.venv"
packages=("torch==$version")
[ "$kind" = fetch-gpu ] || packages=(--no-deps "torch==$version" nvidia-cuda-runtime==13.0.* nvidia-cuda-cupti==13.0.*)
if ! timeout 1200 "$fresh.venv/bin/pip" install -q --disable-pip-version-check --target "$fresh" "${packages[@]}"; then
    rm -rf "$fresh" "$fresh.venv"
    touch "$home.unavailable"
    skip "pip cannot install torch $version"
fi
rm -rf "$fresh.venv"
mv "$fresh" "$home"
