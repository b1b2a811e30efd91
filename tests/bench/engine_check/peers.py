"""The formulas of kvpress 0.5.5, and a round of BalanceKV as its authors compute it, in PyTorch, timed beside our engine
by `engine-check bench --against-peers PYTHON`.

Reads the names of works from standard input and answers each with the CPU seconds, the seconds of the clock and the
sum of the scores, computed from the float32 tensors of a folder.
"""

import sys
import time
from pathlib import Path

import torch

KV_HEADS, QUERY_HEADS, TOKENS, WIDTH = 8, 32, 16384, 128
WINDOW, CHUNK, H2O_TOKENS, SKETCH, BLOCK = 32, 256, 4096, 64, 256
SCALING = WIDTH**-0.5


def rows(folder, name, heads):
    numbers = torch.frombuffer(bytearray((Path(folder) / name).read_bytes()), dtype=torch.float32)
    return numbers.reshape(heads, TOKENS, WIDTH)


def key_norm(queries, keys, values):
    return keys.norm(dim=-1)


def key_diff(queries, keys, values):
    anchor = torch.nn.functional.normalize(keys, dim=-1).mean(dim=1, keepdim=True)
    return torch.nn.functional.cosine_similarity(keys, anchor, dim=-1)


def causal_sums(queries, keys, window):
    """Column sums of the causal softmax of the last `window` queries, as SnapKV's press makes them: one product."""
    group = QUERY_HEADS // KV_HEADS
    weights = queries[:, -window:] @ keys.repeat_interleave(group, dim=0).transpose(1, 2) * SCALING
    mask = torch.full((window, window), float("-inf")).triu(1)
    weights[..., -window:] += mask
    return weights.softmax(dim=-1, dtype=torch.float32).sum(dim=1)


def snapkv(queries, keys, values):
    return causal_sums(queries, keys, WINDOW)


def h2o(queries, keys, values):
    """All queries of the first tokens, a KV head at a time: the whole matrix does not fit."""
    group = QUERY_HEADS // KV_HEADS
    sums = []
    mask = torch.full((H2O_TOKENS, H2O_TOKENS), float("-inf")).triu(1)
    for head in range(QUERY_HEADS):
        logits = queries[head, :H2O_TOKENS] @ keys[head // group, :H2O_TOKENS].T * SCALING
        sums.append((logits + mask).softmax(dim=-1).sum(dim=0))
    return torch.stack(sums)


def chunks(queries, keys, values):
    """Compactor's non-causal attention inside chunks."""
    group = QUERY_HEADS // KV_HEADS
    blocks = keys.repeat_interleave(group, dim=0).reshape(QUERY_HEADS, -1, CHUNK, WIDTH)
    logits = queries.reshape(QUERY_HEADS, -1, CHUNK, WIDTH) @ blocks.transpose(2, 3) * SCALING
    return logits.softmax(dim=-1).sum(dim=2)


def leverage(queries, keys, values):
    """Leverage of the centred keys after a Gaussian sketch, by Cholesky."""
    sketch = torch.randn(KV_HEADS, WIDTH, SKETCH) * SKETCH**-0.5
    sketched = (keys - keys.mean(dim=1, keepdim=True)) @ sketch
    across = sketched.transpose(1, 2)
    gram = across @ sketched
    root = torch.linalg.cholesky(0.5 * (gram + gram.transpose(1, 2)) + 1e-2 * torch.eye(SKETCH))
    return (sketched * torch.cholesky_solve(across, root).transpose(1, 2)).sum(dim=-1).clamp_min(0)


def balance(queries, keys, values):
    """(sign + 1) u of one round: the kernel of every block as one product, then a row of all blocks at a time."""
    keys, values = (rows.reshape(KV_HEADS, -1, BLOCK, WIDTH) for rows in (keys, values))
    keys = keys - keys.mean(dim=2, keepdim=True)
    kernel = torch.exp(keys @ keys.transpose(2, 3) * (0.1 * SCALING)) * (values @ values.transpose(2, 3) + 0.025)
    signs = torch.zeros(kernel.shape[:3])
    signs[..., 0] = 1
    uniforms = torch.arange(1, BLOCK + 1, dtype=torch.float64) * 0.618033988749895 % 1  # stand for the draws
    for i in range(1, BLOCK):
        plus = 0.5 - 4 * (kernel[:, :, i] * signs).sum(dim=-1)
        signs[..., i] = torch.where(uniforms[i] < plus, 1.0, -1.0)
    return (signs + 1) * uniforms


WORKS = {
    "key-norm": key_norm,
    "keydiff": key_diff,
    "snapkv": snapkv,
    "h2o-4k": h2o,
    "chunks-256": chunks,
    "leverage-64": leverage,
    "balance-256": balance,
}


def main():
    folder, threads = sys.argv[1], int(sys.argv[2])
    if threads > 0:
        torch.set_num_threads(threads)
    queries = rows(folder, "queries.f32", QUERY_HEADS)
    keys, values = rows(folder, "keys.f32", KV_HEADS), rows(folder, "values.f32", KV_HEADS)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    for line in sys.stdin:
        cpu, clock = time.process_time(), time.perf_counter()
        scores = WORKS[line.strip()](queries, keys, values)
        cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
        print(cpu, clock, scores.double().sum().item(), flush=True)


if __name__ == "__main__":
    main()
