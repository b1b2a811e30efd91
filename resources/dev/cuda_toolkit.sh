#!/usr/bin/env bash
# Fetches nvcc 13.0 from PyPI into a per-user cache that clones share, where no CUDA toolkit is installed. The versions
# are pinned: the newest wheels of nvcc's parts do not fit each other. Prints the path of nvcc.
# Usage: resources/dev/cuda_toolkit.sh [--force] (--force: also when nvcc is installed).
set -euo pipefail
if [ "${1:-}" != --force ]; then
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
        [ ! -x "$nvcc" ] || { echo "$nvcc"; exit 0; }
    done
fi
wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96
    nvidia-cuda-cccl==13.0.85)
key=$(printf '%s\n' "${wheels[@]}" | sha256sum | cut -c1-12)
home=${XDG_CACHE_HOME:-$HOME/.cache}/kvscope/cuda-$key
mkdir -p "$home"
exec 9>"$home/lock"
flock 9
if [ ! -e "$home/whole" ]; then
    echo "Fetching nvcc 13.0 into $home" >&2
    rm -rf "$home/nvidia"
    python3 -m venv "$home/venv"
    timeout 600 "$home/venv/bin/pip" install -q --retries 2 --disable-pip-version-check --no-deps --target "$home" "${wheels[@]}" >&2
    rm -rf "$home/venv"
    chmod +x "$home"/nvidia/cu13/bin/* "$home"/nvidia/cu13/nvvm/bin/* 2>/dev/null || true
    ln -sfn lib "$home/nvidia/cu13/lib64" # where nvcc's profile looks
    touch "$home/whole"
fi
echo "$home/nvidia/cu13/bin/nvcc"
