"""What PyTorch does with the same layer on the same GPU, for the report: flash attention forward (H2O is compared with it), a
large bfloat16 matrix product and a copy. Times are medians of events around one call, after reading 512 MB, which
empties the caches. Exit code 77 where PyTorch or the GPU is missing.
Usage: flash_attention.py [TOKENS] (default 16384)."""

import statistics
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"PyTorch was not measured: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch was not measured: it sees no GPU")
    sys.exit(77)


def milliseconds(work, runs=15):
    flush = torch.ones(128 << 20, device="cuda")
    times = []
    for run in range(runs + 2):
        flush.sum()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        if run >= 2:  # the first two warm up
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def rows(heads, tokens):
    return torch.randn(1, heads, tokens, 128, device="cuda", dtype=torch.bfloat16)


tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 16384
queries, keys, values = rows(32, tokens), rows(8, tokens), rows(8, tokens)
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    flash = milliseconds(
        lambda: torch.nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
    )
a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
product = milliseconds(lambda: torch.matmul(a, b))
source = torch.ones(256 << 20, device="cuda")
target = torch.empty_like(source)
copy = milliseconds(lambda: target.copy_(source))
print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
print(f"flash attention forward, causal, {tokens} tokens, 32 query heads, 8 KV heads, 128 elements, bfloat16: {flash:.4f} ms")
print(f"matrix product 8192 x 8192 x 8192, bfloat16: {2 * 8192**3 / product / 1e6:.0f} GFLOP/s")
print(f"copy: {2 * source.numel() * 4 / copy / 1e6:.0f} GB/s read and written")
