"""What other people's code needs for our work on the same GPU, for the report: the scores of
kvpress 0.5.5, torch.topk and, where PYTHONPATH finds it, the walk of BalanceKV's authors.

One line for each work: `name, n tokens: X.XXX ms`. Times are medians of events around one call,
after reading 512 MB, which empties the caches; the input sets take turns. What Python needs to
start kernels counts where the GPU waits for it. The layer is a stand-in: its projections take a
slice of the hidden states, so no product with weights is timed, as our kernels are given queries
too. Everything else that a press does counts, its rotation of the queries included.
Exit code 77 where PyTorch or the GPU is missing; what else is missing is left out with one line.
Usage: peers.py [--device cuda] [--tokens 16384 131072]."""

import argparse
import importlib
import importlib.util
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from types import SimpleNamespace

try:
    import torch
except ImportError as error:
    print(f"The peers were not measured: {error}")
    sys.exit(77)

KV_HEADS, QUERY_HEADS, WIDTH = 8, 32, 128
GROUP, SCALING = QUERY_HEADS // KV_HEADS, WIDTH**-0.5
WINDOW, CHUNK, SKETCH, REMOVED = 32, 256, 64, 0.75
BLOCK, ROUNDS, GAMMA, TEMPERATURE = 256, 2, 4.0, 0.1
SETS, WARM_UP, RUNS, SECONDS = 3, 3, 30, 4.0
MOST_SQUARE = 16384  # tokens up to which all attention weights of a layer fit: [32, n, n] are 17 GB
TYPE = torch.bfloat16

# name: (file in kvpress/presses, class, options)
PRESSES = {
    "kvpress KnormPress": ("knorm_press", "KnormPress", {}),
    "kvpress KeyDiffPress": ("keydiff_press", "KeyDiffPress", {}),
    f"kvpress SnapKVPress, window {WINDOW}": (
        "snapkv_press",
        "SnapKVPress",
        {"window_size": WINDOW},
    ),
    "kvpress TOVAPress": ("tova_press", "TOVAPress", {}),
    f"kvpress LeverageScorePress, sketch {SKETCH}": (
        "leverage_press",
        "LeverageScorePress",
        {"sketch_dimension": SKETCH},
    ),
    f"kvpress NonCausalAttnPress, chunk {CHUNK}": (
        "non_causal_attention_press",
        "NonCausalAttnPress",
        {"chunk_size": CHUNK},
    ),
    f"kvpress CompactorPress, chunk {CHUNK}, sketch {SKETCH}": (
        "compactor_press",
        "CompactorPress",
        {"chunk_size": CHUNK, "sketch_dimension": SKETCH},
    ),
}


class Columns(torch.nn.Module):
    """A projection that takes columns [begin, end) of [1, n, hidden width]: a view, no work."""

    def __init__(self, begin, end):
        super().__init__()
        self.begin, self.end = begin, end

    def forward(self, hidden):
        return hidden[..., self.begin : self.end]


class Layer(torch.nn.Module):
    """The attributes of an attention layer that the presses read (kvpress/utils.py, Transformers'
    Llama). Hidden states: [1, n, 4096 of queries before their rotation | 1024 of such keys]."""

    def __init__(self):
        super().__init__()
        queries, keys = QUERY_HEADS * WIDTH, KV_HEADS * WIDTH
        self.q_proj, self.k_proj = Columns(0, queries), Columns(queries, queries + keys)
        self.head_dim, self.layer_idx, self.scaling = WIDTH, 0, SCALING
        self.num_key_value_groups = GROUP
        self.config = SimpleNamespace(
            num_attention_heads=QUERY_HEADS,
            num_key_value_heads=KV_HEADS,
            head_dim=WIDTH,
            _attn_implementation="eager",
        )
        self.eval()


@dataclass
class Inputs:
    """One layer's random rows. hidden: [1, n, 5120]; queries: [1, 32, n, 128]; keys and values:
    [1, 8, n, 128]; positions: cosines and sines, [1, n, 128] each; scores: [8, n] float32."""

    hidden: torch.Tensor
    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    positions: tuple
    scores: torch.Tensor

    @property
    def tokens(self):
        return self.keys.shape[2]


def rotation(tokens, device):
    """Llama's cosines and sines, [1, n, 128] each (Transformers' LlamaRotaryEmbedding)."""
    rates = 500000.0 ** (-torch.arange(0, WIDTH, 2, device=device) / WIDTH)
    angles = torch.outer(torch.arange(tokens, device=device), rates).repeat(1, 2)[None]
    return angles.cos().to(TYPE), angles.sin().to(TYPE)


def random_inputs(tokens, device):
    def rows(*shape):
        return torch.randn(*shape, device=device, dtype=TYPE)

    return Inputs(
        hidden=rows(1, tokens, (QUERY_HEADS + KV_HEADS) * WIDTH),
        queries=rows(1, QUERY_HEADS, tokens, WIDTH),
        keys=rows(1, KV_HEADS, tokens, WIDTH),
        values=rows(1, KV_HEADS, tokens, WIDTH),
        positions=rotation(tokens, device),
        scores=torch.randn(KV_HEADS, tokens, device=device),
    )


def events_milliseconds(work, flush):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.sum()
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def clock_milliseconds(work):
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def milliseconds(work, sets, device):
    """Median of RUNS calls, of fewer where they take more than SECONDS together; set after set."""
    flush = torch.ones(128 << 20, device=device) if device == "cuda" else None
    times, begin = [], time.perf_counter()
    for run in range(WARM_UP + RUNS):
        inputs = sets[run % len(sets)]
        call = partial(work, inputs)
        passed = events_milliseconds(call, flush) if device == "cuda" else clock_milliseconds(call)
        if run >= WARM_UP:
            times.append(passed)
        if len(times) >= 3 and time.perf_counter() - begin > SECONDS:
            break
    return statistics.median(times)


def report(name, work, sets, device):
    """One line, whatever happens: a peer that fails or does not fit keeps the others going."""
    tokens = sets[0].tokens
    try:
        print(f"{name}, {tokens} tokens: {milliseconds(work, sets, device):.3f} ms", flush=True)
    except Exception as problem:
        reason = str(problem).strip().partition("\n")[0][:160]
        print(
            f"{name}, {tokens} tokens was not measured: {type(problem).__name__}: {reason}",
            flush=True,
        )
    if device == "cuda":
        torch.cuda.empty_cache()


def find_kvpress():
    """Makes kvpress's modules importable without its __init__, which needs packages that no score
    needs (datasets, fire, cachetools) and patches Transformers. False where either is missing."""
    spec = importlib.util.find_spec("kvpress")
    if spec is None or importlib.util.find_spec("transformers") is None:
        print("kvpress was not measured: it or Transformers is not installed")
        return False
    sys.modules["kvpress"] = importlib.util.module_from_spec(spec)
    print(f"kvpress {metadata.version('kvpress')}, Transformers {metadata.version('transformers')}")
    return True


def kvpress_class(file, name):
    """None, and one line, where the installed version lacks the press or cannot be imported."""
    try:
        return getattr(importlib.import_module(f"kvpress.presses.{file}"), name)
    except (ImportError, AttributeError) as problem:
        print(f"kvpress {name} was not measured: {problem}")
        return None


def press_score(press, layer):
    """A press's score() before any attention weights are known: [1, 8, n]."""

    def work(inputs):
        extra = {"position_embeddings": inputs.positions}
        scores = press.score(layer, inputs.hidden, inputs.keys, inputs.values, None, extra)
        if scores.shape != (1, KV_HEADS, inputs.tokens):
            raise ValueError(f"scores of shape {tuple(scores.shape)}")
        return scores

    return work


def press_works(layer):
    """The score() of every press of the table, by name."""
    works = {}
    for name, (file, class_name, options) in PRESSES.items():
        press = kvpress_class(file, class_name)
        if press is not None:
            works[name] = press_score(press(compression_ratio=REMOVED, **options), layer)
    return works


def step_works():
    """The presses' inner steps alone, nearest to our kernels: no rotation, z-scores or pooling."""
    works = {}
    chunks = kvpress_class("non_causal_attention_press", "NonCausalAttnPress")
    leverage = kvpress_class("leverage_press", "LeverageScorePress")
    if chunks is not None:
        repeat_kv = importlib.import_module("transformers.models.llama.modeling_llama").repeat_kv
        works[f"kvpress non_causal_chunked_attn alone, chunk {CHUNK}"] = lambda inputs: (
            chunks.non_causal_chunked_attn(inputs.queries, repeat_kv(inputs.keys, GROUP), CHUNK)
        )
    if leverage is not None:
        works[f"kvpress compute_leverage_scores alone, sketch {SKETCH}"] = lambda inputs: (
            leverage.compute_leverage_scores(inputs.keys, SKETCH)
        )
    return works


def causal_mask(tokens, device):
    """[1, 1, n, n]: 0 up to the diagonal, then the type's lowest number, as Transformers does."""
    return torch.full(
        (1, 1, tokens, tokens), torch.finfo(TYPE).min, device=device, dtype=TYPE
    ).triu(1)


def observed_work(press, layer, mask):
    """H2O as kvpress runs it: eager attention (Transformers' Llama), then its weights' column sums.
    One KV head at a time, since a whole layer's float32 weights do not fit."""
    eager = importlib.import_module(
        "transformers.models.llama.modeling_llama"
    ).eager_attention_forward

    def work(inputs):
        for head in range(KV_HEADS):
            keys, values = inputs.keys[:, head : head + 1], inputs.values[:, head : head + 1]
            queries = inputs.queries[:, head * GROUP : (head + 1) * GROUP]
            weights = eager(layer, queries, keys, values, mask, SCALING)[1]  # [1, 4, n, n]
            press.score(layer, inputs.hidden, keys, values, weights, {})

    return work


def observed_report(layer, sets, device):
    """ObservedAttentionPress with and without the attention whose weights it sums."""
    tokens, name = sets[0].tokens, "kvpress ObservedAttentionPress"
    press = kvpress_class("observed_attention_press", "ObservedAttentionPress")
    if press is None:
        return
    if tokens > MOST_SQUARE:
        size = GROUP * tokens**2 * 2 / 1e9
        print(f"{name}, {tokens} tokens was not measured: a KV head's weights are {size:.0f} GB")
        return
    press = press(compression_ratio=REMOVED)
    mask = causal_mask(tokens, device)
    report(
        f"{name} with eager attention, a KV head at a time",
        observed_work(press, layer, mask),
        sets,
        device,
    )
    del mask
    weights = torch.rand(1, QUERY_HEADS, tokens, tokens, device=device, dtype=TYPE)
    report(
        f"{name} alone, its weights given",
        lambda inputs: press.score(layer, inputs.hidden, inputs.keys, inputs.values, weights, {}),
        sets,
        device,
    )


def balance_works(device):
    """The weighted walk of BalanceKV's authors over rows [1, 8, n, 128]: src/balanced_walk.py of
    ksheth96/BalanceKV 4ccee30, no package, from a folder on PYTHONPATH."""
    if importlib.util.find_spec("balanced_walk") is None:
        print("BalanceKV's balanced_walk was not measured: no such module on PYTHONPATH")
        return {}
    walk = importlib.import_module("balanced_walk").balanced_walk
    random = torch.Generator(device=device)

    def work(inputs):
        return walk(
            inputs.keys, random, GAMMA, TEMPERATURE, 0.0, ROUNDS, BLOCK, value=inputs.values
        )

    return {f"BalanceKV's balanced_walk, B = {BLOCK}, T = {ROUNDS}": work}


def quarter(inputs):
    """The largest n / 4 of each head's scores, sorted, as kvpress's compress() calls it."""
    return torch.topk(inputs.scores, inputs.tokens // 4, dim=-1)


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16384, 131072])
    return parser.parse_args()


@torch.no_grad()
def main():
    chosen = options()
    if chosen.device == "cuda" and not torch.cuda.is_available():
        print("The peers were not measured: PyTorch sees no GPU")
        return 77
    device_name = torch.cuda.get_device_name() if chosen.device == "cuda" else "the CPU"
    print(f"PyTorch {torch.__version__} on {device_name}")
    print(f"{QUERY_HEADS} query heads, {KV_HEADS} KV heads, {WIDTH} elements, {TYPE}")
    torch.manual_seed(1)
    layer, has_kvpress = Layer(), find_kvpress()
    works = press_works(layer) | step_works() if has_kvpress else {}
    works["torch.topk of a quarter, [8, n] float32"] = quarter
    works |= balance_works(chosen.device)
    for tokens in chosen.tokens:
        sets = [random_inputs(tokens, chosen.device) for _ in range(SETS)]
        for name, work in works.items():
            report(name, work, sets, chosen.device)
        if has_kvpress:
            observed_report(layer, sets, chosen.device)
        del sets
    return 0


if __name__ == "__main__":
    sys.exit(main())
