"""`import kvscope` gives what the command line gives: the same lists, numbers, figures and sentences."""

import ast
import gc
import inspect
import json
import os
import pathlib
import pickle
import signal
import subprocess
import tempfile
import unittest

import kvscope
import numpy as np

PROGRAM = os.environ["KVSCOPE_PROGRAM"]
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "sample_data" / "needle-1k.h5"
POLICIES = [
    "keydiff:kvpress@0.25",
    "snapkv@100t",
    "compactor:kvpress@0.2",
    "balancekv@0.25",
    "tova@0.1",
    "uniform@0.3",
    "subgen_kcenter@0.1",
    "snapkv:minference@0.1",
]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([PROGRAM, *map(str, words)], cwd=folder, capture_output=True, text=True)


def evicted(policy: str, cut: str, layer: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "kept.json"
        words = ["--policy", policy, "--cut", cut, "--layers", layer, "--seed", 5, "--scores", "--out", out]
        done = run("evict", SAMPLE, *words)
        assert done.returncode == 0, done.stderr
        return json.loads(out.read_text())["heads"]


class ModuleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.capture = kvscope.open(SAMPLE)

    def assert_same_scores(self, table: np.ndarray | None, stated: list[list[float | None]]) -> None:
        """Lists state a number for every token of the capture, null where there is none."""
        if table is None:
            self.assertEqual(stated, [])
            return
        rows = [np.array([np.nan if x is None else x for x in row], np.float32)[: table.shape[1]] for row in stated]
        np.testing.assert_array_equal(table, np.array(rows))

    def assert_same(self, selection: kvscope.Selection, heads: list[dict]) -> None:
        self.assertEqual([k.tolist() for k in selection.kept], [head["kept"] for head in heads])
        own = [own["kept"] for head in heads for own in head.get("query_heads", [])]
        self.assertEqual(own, [k.tolist() for k in selection.query_heads or []])
        self.assert_same_scores(selection.scores, [head["scores"] for head in heads if "scores" in head])
        scores = [own["scores"] for head in heads for own in head.get("query_heads", [])]
        self.assert_same_scores(selection.query_head_scores, scores)
        self.assertEqual(selection.query_head_scores is None, selection.query_heads is None)
        for weights, name in (
            (selection.numerator_weights, "numerator"),
            (selection.denominator_weights, "denominator"),
        ):
            stated = [head.get("weights", {}).get(name) for head in heads]
            if any(stated):
                self.assertEqual([w.tolist() for w in weights], stated)
            else:
                self.assertTrue(weights is None or all((w == 1).all() for w in weights))

    def test_lists_of_a_capture_are_the_command_lines(self) -> None:
        for policy in POLICIES:
            with self.subTest(policy=policy):
                heads = evicted(policy, "default", 2)
                self.assertEqual(len(heads), 2)
                self.assert_same(self.capture.evict(2, policy, seed=5), heads)

    def test_lists_of_arrays_are_the_command_lines(self) -> None:
        c = self.capture
        k, v, q, k_pre = c.keys(2), c.values(2), c.queries(2), c.keys_pre_rope(2)
        for policy in POLICIES:
            with self.subTest(policy=policy):
                heads = evicted(policy, "none", 2)
                given = {"k_pre": k_pre, "seed": 5, "layer": 2, "num_layers": 6}
                self.assert_same(kvscope.evict(k, v, q, policy=policy, **given), heads)
                batch = kvscope.evict(k[None], np.asfortranarray(v), q.astype(np.float64), policy=policy, **given)
                self.assert_same(batch, heads)

    def test_measures_are_the_command_lines(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "measures.json"
            run("measure", SAMPLE, "--policy", "snapkv@0.1", "--layers", 3, "--out", out)
            rows = json.loads(out.read_text())["rows"]
        values = self.capture.measure(3, "snapkv@0.1")
        for name in ("output_error", "retained_mass"):
            self.assertEqual(values[name].tolist(), [row[name] for row in rows])
        c = self.capture
        arrays = kvscope.measure(c.keys(3), c.values(3), c.queries(3), "exact", ["output_error"], layer=3)
        self.assertEqual(arrays["output_error"].shape, (8,))
        self.assertLess(arrays["output_error"].max(), 1e-6)

    def test_softcap_window_and_sinks_of_a_layer_of_arrays(self) -> None:
        """Against numpy in double: softmax(cap tanh(s q.k / cap)) over the window, with the sink below the line."""
        rng = np.random.default_rng(3)
        k, v, q = rng.normal(size=(1, 40, 4)), rng.normal(size=(1, 40, 4)), rng.normal(size=(2, 10, 4)) * 3
        sinks, cap, window = [0.5, 2.0], 1.5, 12
        layer = {"cut": "30", "softcap": cap, "sliding_window": window, "sinks": sinks}
        got = kvscope.measure(k, v, q, "key_norm@0.3", ["output_error"], **layer)["output_error"]
        kept = kvscope.evict(k, v, q, policy="key_norm@0.3", cut="30").kept[0].tolist()
        for head in range(2):
            errors = []
            for row in range(10):
                j, out = 30 + row, []
                for tokens in (range(40), [*kept, *range(30, 40)]):
                    seen = [i for i in tokens if j - window < i <= j]
                    e = np.exp(cap * np.tanh(k[0, seen] @ q[head, row] / 2 / cap))
                    out.append(e @ v[0, seen] / (e.sum() + np.exp(sinks[head])))
                errors.append(np.linalg.norm(out[1] - out[0]) / np.linalg.norm(out[0]))
            self.assertAlmostEqual(got[head], np.mean(errors), places=5)
        inf = float("inf")
        refused = ({"sinks": [1.0]}, {"sinks": [0.5, 1e300]}, {"softcap": -1.0}, {"softcap": inf})
        for wrong in (*refused, {"sliding_window": -3}, {"scaling": 0.0}, {"scaling": -1.0}, {"layer": 2**31 - 1}):
            with self.assertRaises(kvscope.Error) as raised:
                kvscope.measure(k, v, q, cut="30", **wrong)
            self.assertEqual(raised.exception.place, next(iter(wrong)))

    def test_positions_and_rotation_of_arrays_are_the_captures(self) -> None:
        """Tokens whose positions have gaps, as tensors with a described model and as arrays."""
        rng = np.random.default_rng(11)
        n, heads, d = 90, 2, 8
        k, v = (rng.normal(size=(heads, n, d)).astype(np.float32) for _ in range(2))
        q = rng.normal(size=(2 * heads, n, d)).astype(np.float32)
        positions = np.cumsum(rng.integers(1, 40, n))
        rope = kvscope.Rope([1.0, 0.3, 0.02], interleaved=True, rotary_begin=2, attention_scaling=1.25)
        turn = {"type": "yarn", "theta": 1e4, "attention_scaling": 1.25, "rotary_dim": 6, "rotary_begin": 2}
        layer = {
            "attn_type": "full_attention",
            "scaling": d**-0.5,
            "softcap": 0.0,
            "sliding_window": 0,
            "sinks": False,
            "rope": "r",
        }
        model = {
            "format": "kvscope-described-model",
            "version": 1,
            "model_id": "m",
            "model_type": "x",
            "config_class": "X",
        }
        model |= {"transformers_version": "5.23.0", "prompt_tokens": None, "num_layers": 1, "num_q_heads": 2 * heads}
        model |= {"num_kv_heads": heads, "head_dim": d, "value_dim": d, "layers": [layer]}
        model |= {"ropes": {"r": {**turn, "layout": "interleaved", "inv_freq": rope.inv_freq}}}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "tensors.npz"
            np.savez(file, **{"k.0": k, "v.0": v, "q.0": q, "position_ids": positions})
            (file.parent / "described_model.json").write_text(json.dumps(model))
            capture = kvscope.open(file)
            self.assertEqual(capture.positions, positions.tolist())
            np.testing.assert_allclose(capture.rope(0).inv_freq, rope.inv_freq, rtol=1e-7)
            angle = positions[:, None] * np.float32(rope.inv_freq)  # k rotated back, in double
            pair = k[:, :, 2::2] + 1j * k[:, :, 3::2]
            before = pair * np.exp(-1j * angle) / 1.25
            got = capture.keys_pre_rope(0)
            np.testing.assert_allclose(got[:, :, 2::2] + 1j * got[:, :, 3::2], before, atol=2e-4)
            given = {"positions": positions, "rope": rope, "cut": "60"}
            without = {**given, "positions": None}
            for policy in ("leverage@0.3", "compactor:kvpress@0.3"):
                lists, wrong = capture.evict(0, policy, cut=60), kvscope.evict(k, v, q, policy, **without)
                same = kvscope.evict(k, v, q, policy, **given)
                np.testing.assert_array_equal(same.scores, lists.scores)
                self.assertEqual([x.tolist() for x in same.kept], [x.tolist() for x in lists.kept])
                self.assertFalse(np.array_equal(wrong.scores, lists.scores))
            moved = "streaming_llm:paper@0.3"  # rotates kept keys from their positions to those in the cache
            stated = capture.measure(0, moved, cut=60)["output_error"].tolist()
            self.assertEqual(kvscope.measure(k, v, q, moved, **given)["output_error"].tolist(), stated)
            self.assertNotEqual(kvscope.measure(k, v, q, moved, **without)["output_error"].tolist(), stated)
        for wrong, place in (
            ({"positions": positions}, "positions"),
            ({"positions": positions[:5], "rope": rope}, "positions"),
            ({"positions": positions + 0.5, "rope": rope}, "positions"),
            ({"rope": kvscope.Rope([1.0] * 5)}, "rope"),
            ({"rope": [1.0]}, "rope"),
        ):
            with self.assertRaises(kvscope.Error) as raised:
                kvscope.evict(k, v, q, **wrong)
            self.assertEqual(raised.exception.place, place)

    def test_arguments_that_do_not_fit_raise_one_sentence(self) -> None:
        k = np.ones((2, 9, 4), np.float32)
        policy = "keydiff@0.5"
        self.assertEqual(len(kvscope.measure(k, k, k, policy, "output_error", cut=5)), 1)  # one name, a token number
        cases = [
            (lambda: kvscope.evict(k, k, policy=5), "policy", "5 is no text"),
            (lambda: kvscope.evict(k, k, policy="\udc80"), "policy", "is no text"),
            (lambda: kvscope.evict(k, k, policy=policy, cut=[1]), "cut", "no whole number"),
            (lambda: kvscope.evict(k, k, policy=policy, cut=-2), "cut", "out of range"),
            (lambda: kvscope.evict(k, k, policy=policy, seed="x"), "seed", "'x' is no whole number"),
            (lambda: kvscope.evict(k, k, policy=policy, seed=2**64), "seed", "out of range"),
            (lambda: kvscope.evict(k, k, policy=policy, softcap="much"), "softcap", "no number"),
            (lambda: kvscope.evict(k, k, policy=policy, layer=1.5), "layer", "no whole number"),
            (lambda: kvscope.evict(k, k, policy=policy, layer=5, num_layers=3), "layer", "of 3 layers has no layer 5"),
            (lambda: kvscope.evict(k, k, policy=policy, sinks=[[1.0]]), "sinks", "no row of finite numbers"),
            (lambda: kvscope.evict(k, k, policy=policy, kv_of_q=[0.5, 1]), "kv_of_q", "whole"),
            (lambda: kvscope.evict(k, k, policy=policy, kv_of_q=[1, 1]), "kv_of_q", "no query head reads KV head 0"),
            (lambda: kvscope.evict(k, k, policy=policy, kv_of_q=[0, 2**40]), "kv_of_q", "out of range"),
            (lambda: kvscope.evict(k, k, policy=policy, threads=1025), "threads", "out of range"),
            (lambda: kvscope.evict(np.ma.masked_array(k, k > 0), k, policy=policy), "k", "numbers are masked"),
            (lambda: kvscope.evict([[[1.0], [1.0, 2.0]]], k), "k", "no array of numbers"),
            (lambda: kvscope.measure(k, k, k, metrics=[3]), "metrics", "3 is no text"),
            (lambda: kvscope.open(7), "path", "7 is no path"),
            (lambda: kvscope.open(b"caf\xe9.h5"), "path", "is not UTF-8"),
            (lambda: self.capture.keys("2"), "layer", "'2' is no whole number"),
            (lambda: self.capture.measure(3, policy, metrics=None), "metrics", "None is no text"),
            (lambda: kvscope.plot("curves", np.ones((2, 900, 4))), "capture", "is no capture"),
            (lambda: kvscope.plot(3, self.capture), "view", "3 is no text"),
        ]
        for wrong, place, sentence in cases:
            with self.subTest(place=place, sentence=sentence), self.assertRaises(kvscope.Error) as raised:
                wrong()
            self.assertEqual(raised.exception.place, place)
            self.assertIn(sentence, raised.exception.sentence)
            self.assertTrue(raised.exception.remedy)
            self.assertLess(len(str(raised.exception)), 250)
            self.assertEqual(str(pickle.loads(pickle.dumps(raised.exception))), str(raised.exception))

    def test_signatures_docstrings_and_stubs(self) -> None:
        self.assertEqual(
            list(inspect.signature(kvscope.Capture.evict).parameters), ["self", "layer", "policy", "cut", "seed"]
        )
        self.assertEqual(inspect.signature(kvscope.measure).parameters["cut"].default, "last:256")
        for name in kvscope.__all__:
            if callable(thing := getattr(kvscope, name)) and name != "Error":
                self.assertTrue(inspect.getdoc(thing), name)
                self.assertNotIn("::", inspect.getdoc(thing))
        stub = ast.parse((pathlib.Path(kvscope.__file__).parent / "_core.pyi").read_text()).body
        stated = {
            c.name: {m.name for m in c.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("__")}
            for c in stub
            if isinstance(c, ast.ClassDef)
        }
        functions = {part.name for part in stub if isinstance(part, ast.FunctionDef)}
        self.assertEqual(
            functions,
            {name for name in dir(kvscope._core) if callable(getattr(kvscope._core, name)) and name[0].islower()},
        )
        for name in ("Selection", "Capture"):
            self.assertEqual(
                stated[name], {part for part in vars(getattr(kvscope._core, name)) if not part.startswith("__")}
            )

    def test_results_are_views_that_outlive_what_they_came_from(self) -> None:
        selection = kvscope.open(SAMPLE).evict(0, "keydiff@0.5")
        kept, scores = selection.kept[0], selection.scores
        self.assertFalse(kept.flags.owndata or kept.flags.writeable or scores.flags.owndata)
        before = kept.tolist()
        address = selection.kept[0].__array_interface__["data"][0]
        self.assertEqual(address, kept.__array_interface__["data"][0])
        del selection
        gc.collect()
        self.assertEqual(kept.tolist(), before)
        keys = self.capture.keys(0)
        self.assertEqual((keys.shape, keys.dtype), ((2, self.capture.num_tokens, 64), np.float32))
        self.assertIsNotNone(keys.base)

    def test_masks_scores_and_facts(self) -> None:
        selection = self.capture.evict(1, "key_norm@0.25")
        mask = selection.mask()
        self.assertEqual([np.flatnonzero(row).tolist() for row in mask], [k.tolist() for k in selection.kept])
        self.assertEqual(mask.shape[1], selection.cut)
        best = np.argmax(selection.scores[0])
        self.assertTrue(mask[0, best])
        self.assertAlmostEqual(selection.retention, mask.mean())
        self.assertEqual(selection.stored_tokens, mask.sum(1).mean())
        sampled = self.capture.evict(1, "subgen@0.25")  # a slot drawn twice is stored twice
        self.assertGreater(sampled.stored_tokens, sampled.retention * sampled.cut + 1)
        self.assertIn("key_norm", repr(selection))
        self.assertEqual(len(self.capture.texts), self.capture.num_tokens)
        self.assertIn("needle", {kind for _, _, kind in self.capture.segments})
        self.assertIn("keydiff", kvscope.policies())

    def test_errors_are_the_command_lines_sentences(self) -> None:
        stated = (
            run("evict", SAMPLE, "--policy", "keydif@0.5", "--out", "x.json").stderr.removeprefix("kvscope: ").strip()
        )
        with self.assertRaises(kvscope.Error) as raised:
            self.capture.evict(0, "keydif@0.5")
        self.assertEqual(str(raised.exception), stated)
        self.assertIsInstance(raised.exception, ValueError)
        self.assertIn("keydiff", raised.exception.remedy)
        broken = SAMPLE.parent / "broken" / "nan.h5"
        with self.assertRaises(kvscope.Error) as raised:
            kvscope.open(broken).evict(1, "keydiff@0.5")
        self.assertEqual(raised.exception.path, str(broken))

    def test_wrong_arrays_name_the_argument(self) -> None:
        k = np.ones((2, 9, 4), np.float32)
        nan = k.copy()
        nan[1, 3, 2] = np.nan
        cases = [
            ((k[0], k), "k", "2 axes"),
            ((k, k[:, :5]), "v", "(2, 5, 4), the other arrays ask for (2, 9, 4)"),
            ((k, k, k[:, :, :2]), "q", "(2, 9, 2)"),
            ((k, k, np.ones((3, 9, 4))), "q", "3 query heads do not divide among 2 KV heads"),
            ((nan, k), "k", "NaN in head 1, row 3"),
            ((k, "text"), "v", "no array of numbers"),
            ((k[:, :0], k[:, :0]), "k", "empty"),
        ]
        for arrays, place, sentence in cases:
            with self.subTest(place=place, sentence=sentence), self.assertRaises(kvscope.Error) as raised:
                kvscope.evict(*arrays, policy="keydiff@0.5")
            self.assertEqual(raised.exception.place, place)
            self.assertIn(sentence, str(raised.exception))
        with self.assertRaises(kvscope.Error):
            kvscope.evict(k, k, policy="snapkv@0.5")  # needs queries

    def test_figures_are_the_command_lines(self) -> None:
        options = {"policy": "keydiff@0.1", "layer": 3, "kv_head": 1, "size": "500x400"}
        figure = kvscope.plot("key_projection", self.capture, **options)
        self.assertEqual(figure._repr_svg_(), figure.svg)
        with tempfile.TemporaryDirectory() as folder:
            words = [w for key, value in options.items() for w in ("--" + key.replace("_", "-"), str(value))]
            done = subprocess.run(
                [PROGRAM, "plot", "key_projection", str(SAMPLE), *words, "--out", "figure.svg"],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(figure.svg, (pathlib.Path(folder) / "figure.svg").read_text())
            self.assertEqual(figure.finding, done.stdout)
            figure.save(pathlib.Path(folder) / "again.svg")
            self.assertEqual(figure.svg, (pathlib.Path(folder) / "again.svg").read_text())
            for name, begin in (("f.png", b"\x89PNG"), ("f.pdf", b"%PDF"), ("f.SVG", b"<?xml")):
                figure.save(pathlib.Path(folder) / name)
                self.assertEqual((pathlib.Path(folder) / name).read_bytes()[: len(begin)], begin)
            for name in ("f.jpg", "f", "missing/f.png", "missing/f.svg"):
                with self.subTest(name=name), self.assertRaises(kvscope.Error):
                    figure.save(pathlib.Path(folder) / name)
                self.assertFalse((pathlib.Path(folder) / name).exists())
        again = kvscope.plot("token_strip", str(SAMPLE), policy=["keydiff@0.1"], layer=0, size="400x300")
        self.assertIn("<svg", again.svg)
        for wrong in (
            {"policy": "keydiff@0.1", "nonsense": 1},
            {"policy": "keydiff@0.1", "layer": 77},
            {"out": "x.svg"},
        ):
            with self.assertRaises(kvscope.Error):
                kvscope.plot("key_projection", self.capture, **wrong)

    def test_ctrl_c_stops_a_run(self) -> None:
        random = np.random.default_rng(3)
        k = random.standard_normal((8, 16384, 64)).astype(np.float32)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with self.assertRaises(KeyboardInterrupt):
            kvscope.evict(k, k, k, policy="h2o@0.5")
            signal.pause()  # done before the signal: it would arrive here
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertEqual(len(kvscope.evict(k[:, :64], k[:, :64], policy="keydiff@0.5").kept), 8)

    def test_a_signal_raises_what_its_handler_raises(self) -> None:
        def late(*_: object) -> None:
            raise TimeoutError("late")

        k = np.random.default_rng(3).standard_normal((8, 16384, 64)).astype(np.float32)
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with self.assertRaises(TimeoutError):
            kvscope.evict(k, k, k, policy="h2o@0.5")
            signal.pause()  # done before the signal: it would arrive here
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    unittest.main()
