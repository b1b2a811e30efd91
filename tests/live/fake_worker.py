"""A worker without a model: `python3 fake_worker.py MODE [FOLDER] ...`. Modes that fail do so at the first request.

FOLDER holds what it serves: context.json (tokens, info) and LAYER_ROLE.f32. A selection's loss is a checksum of its
bits, so that a test can tell which bits arrived; "overflows": those of SnapKV, and the second
of the chunks that are asked for, have none. Python's standard library is all it needs.
"""

import base64
import json
import os
import signal
import struct
import sys
import time

MODE, FOLDER = sys.argv[1], sys.argv[2]
READ, WRITE = sys.stdin.buffer, sys.stdout.buffer
CONTEXT = os.path.join(FOLDER, "context.json")
SELECTIONS: dict = {}
COUNTS = {"chunks": 0, "step": 0, "cut": 0}


def header(size: object, blobs: str = "") -> bytes:
    return f"Content-Length: {size}\r\n{blobs}\r\n".encode()


def send(message: dict, *blobs: bytes) -> None:
    text = json.dumps({"jsonrpc": "2.0"} | message).encode()
    sizes = f"Kvscope-Blobs: {' '.join(str(len(blob)) for blob in blobs)}\r\n" if blobs else ""
    WRITE.write(header(len(text), sizes) + text + b"".join(blobs))
    WRITE.flush()


def receive() -> tuple[dict, list[bytes]]:
    length, sizes = 0, []
    while (line := READ.readline().decode().rstrip("\r\n")) or not length:
        if not line:
            sys.exit(0)  # the end of the input
        name, value = line.split(": ")
        length, sizes = (int(value), sizes) if name == "Content-Length" else (length, [int(x) for x in value.split()])
    message = json.loads(READ.read(length))
    return message, [READ.read(size) for size in sizes]


def tensor(request: int, layer: int, role: str, rows: list[int] | None, info: dict, n: int) -> dict:
    with open(os.path.join(FOLDER, f"{layer}_{role}.f32"), "rb") as file:
        data = file.read()
    heads, width = info["num_q_heads" if role == "q" else "num_kv_heads"], info["value_dim" if role == "v" else "head_dim"]
    begin, end = rows or [0, n]
    places = [[4 * width * (head * n + row) for row in (begin, end)] for head in range(heads)]
    data, shape = b"".join(data[first:last] for first, last in places), [heads, end - begin, width]
    if MODE == "shape":
        shape[0] += 1
    for at in range(0, len(data), 5_000):
        part = data[at : at + 5_000]
        place = {"id": request, "offset": at, "of": len(data), "dtype": "f32", "shape": shape}
        send({"method": "tensors/data", "params": place}, part)
        if MODE == "part":
            break
    return {"bytes": len(data)}


def scores(request: int, params: dict, info: dict) -> dict:
    """Of layer l, KV head h and token t: 100 l + 10 h + t / 8, the sign that of an even t."""
    if params["step"] != COUNTS["step"]:
        raise SystemExit("the steps are out of order")
    COUNTS["step"] = (COUNTS["step"] + 1) % params["steps"]
    if COUNTS["step"]:
        return {"bytes": 0}
    shape = [info["num_layers"], info["num_kv_heads"], COUNTS["cut"]]
    places = ((layer, head, t) for layer in range(shape[0]) for head in range(shape[1]) for t in range(shape[2]))
    values = [(100 * layer + 10 * head + t / 8) * (1 if t % 2 == 0 else -1) for layer, head, t in places]
    data = struct.pack(f"<{len(values)}f", *values)
    for at in range(0, len(data), 500):
        place = {"id": request, "offset": at, "of": len(data), "dtype": "f32", "shape": shape}
        send({"method": "tensors/data", "params": place}, data[at : at + 500])
    return {"bytes": len(data)}


def rows(params: dict, row: object) -> dict:
    overflow = {"code": -32000, "message": "the loss is NaN or infinite", "data": {"remedy": "Load it in bf16"}}
    fails = lambda one: MODE == "overflows" and params["rows_may_fail"] and "snapkv" in str(one)  # noqa: E731
    made = lambda one: {"error": overflow} if fails(one) else row(one)  # type: ignore[operator] # noqa: E731
    return {"rows": [{"selection_id": one} | made(one) for one in params["selection_ids"]]}


def scored(selection: str | None) -> dict:
    nll = SELECTIONS[selection] if selection else 0.5
    tokens = {"losses": [None, nll], "kl": [None, 0.25], "flips": [None, True]}
    return tokens | {"nll": nll, "kl_mean": 0.25, "flip_rate": 0.5}


def answer(message: dict, blobs: list[bytes]) -> dict:
    method, params = message["method"], message["params"]
    if method == "initialize":
        protocol, devices = [2 if MODE == "newer" else 1, 0], [{"name": "cpu", "free": 8e9}]
        worker = {"python": "fake"} | ({"kvscope": "0.0.1"} if MODE == "older" else {})
        return {"protocol": protocol, "worker": worker, "devices": devices, "capabilities": dict.fromkeys(["list", "rows"], MODE != "older")}
    if method == "model/list":
        many = ["x" * 201, "", "two\nlines", *(f"many/{index:04}" for index in range(5000))]
        return {"models": {"right": ["org/small", "org/tiny"], "many": many, "numbers": [1]}.get(MODE, [])}
    if method == "model/inspect":
        sizes = {"f32": 4e6, "bf16": 2e6, "f16": 2e6}
        heads = {"query_heads": 4, "kv_heads": 2, "head_dim": 16}
        supported = params["path"] != "mamba"
        why = "" if supported else "layers of the kind mamba have no keys and values"
        facts = {"architecture": "Fake", "layers": 2, "bytes_to_load": sizes, "bytes_per_token": 4096}
        facts["max_positions"] = 82 if params["path"].endswith("short") else 83
        return facts | heads | {"dtype": "f32", "supported": supported, "why": why}
    if method == "context/close":
        return {}
    if method == "model/open":
        return {"model_id": "m"}
    with open(CONTEXT, encoding="utf-8") as file:
        context = json.load(file)
    tokens, info = context["tokens"], context["info"]
    if method == "text/tokenize":
        texts = [base64.b64encode(text.encode()).decode() for text in context["texts"]]
        return {"ids": tokens["ids"], "segments": tokens["segments"], "bytes": texts}
    if method == "context/read":
        if params["capture_to"]:
            with open(params["capture_to"], "wb") as file:
                file.write(b"a capture")
        COUNTS["cut"] = params["cut"]
        return {"context_id": "c", "info": info, "tokens": tokens, "capture_hash": context["hash"]}
    if method == "context/save":
        with open(params["capture_to"], "wb") as file:
            file.write(b"a saved capture")
        return {"capture_hash": context["hash"]}
    if method == "tensors/get":
        return tensor(message["id"], params["layer"], params["role"], params["rows"], info, len(tokens["ids"]))
    if method == "selection/set":
        name = f"{params['name']}/{params['generation']}"
        words = json.dumps(params["rows"]).replace(" ", "").encode() + b"".join(blobs)
        SELECTIONS[name] = 0
        for byte in words:
            SELECTIONS[name] = (SELECTIONS[name] * 31 + byte) % 1_000_003
        return {"selection_id": name, "kept": 0, "bytes": 4096}
    if method == "chunks/importance":
        COUNTS["chunks"] += 1  # an answer that was asked for twice is another
        losses = [begin + end / 1024 + 4096 * COUNTS["chunks"] for begin, end in params["chunks"]]
        fails = MODE == "overflows" and params["chunks_may_fail"]
        return {"losses": [None if fails and index == 1 else loss for index, loss in enumerate(losses)]}
    if method == "gradient/read":
        return scores(message["id"], params, info)
    if method == "answer/score":
        return rows(params, scored)
    for row, one in enumerate(params["selection_ids"]):
        for index, piece in enumerate(["forty", " two"]):
            token = {"request": message["id"], "row": row, "index": index, "id": index + 1, "text": piece}
            send({"method": "answer/token", "params": {"selection_id": one} | token})
    text = {"ids": [1, 2], "text": "forty two"}
    return rows(params, lambda one: text | {"first_divergence": 1 if one else None})


def misbehave(message: dict) -> None:
    """What a worker must not do, at the request `message`."""
    if MODE in ("dies", "older"):
        print("Traceback (most recent call last):\n  boom\nRuntimeError: the weights are gone", file=sys.stderr)
        sys.exit(3)
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hangs":
        signal.pause()
    while MODE == "floods":
        os.write(2, b"x" * 65536)
    if MODE == "garbage":
        WRITE.write(b"Loading checkpoint shards: 100%\n" + b"x" * 2000)
    if MODE == "half":
        WRITE.write(header(400) + b'{"jsonrpc": "2.0", "res')
    if MODE in ("garbage", "half"):
        WRITE.flush()
        sys.exit(0)
    if MODE == "huge":
        WRITE.write(header(2**63))
        WRITE.flush()
        signal.pause()
    refusals = {
        "refuses": {"code": -32050, "message": "needs 14.2 GiB, 11.8 GiB are free.", "data": {"remedy": "Choose bf16"}},
        "outdated": {"code": -32801, "message": "outdated"},
        "empty": {},
    }
    if MODE in refusals:
        send({"id": message["id"], "error": refusals[MODE]})
    if MODE == "stranger":
        send({"id": 4711, "result": {}})
    if MODE == "slow":
        send({"method": "$/progress", "params": {"id": message["id"], "stage": "layer", "done": 1, "total": 4}})
        cancel = receive()[0]
        assert cancel["method"] == "$/cancel" and cancel["params"]["id"] == message["id"]
        send({"id": message["id"], "error": {"code": -32800, "message": "cancelled"}})
    if MODE in ("importing", "deaf", "late", "late_reader", "stuck"):
        send({"method": "$/progress", "params": {"id": message["id"], "stage": "layer", "done": 1, "total": 4}})
        time.sleep(0.4) if MODE.startswith("late") else signal.pause()


def main() -> None:
    with open(os.path.join(FOLDER, "pid"), "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    if MODE == "chatty":
        WRITE.write(b"Welcome to gpu7\nLast login: today\n" + b"." * 30_000 + b"\n")
    if MODE == "endless":
        WRITE.write(b"." * 70_000)
    WRITE.write(b"KVSCOPE 2\n" if MODE == "version" else b"KVSCOPE 1\n")
    WRITE.flush()
    while True:
        message, blobs = receive()
        if "id" not in message:
            continue
        at = {"importing": "initialize"} | dict.fromkeys(("dies", "older"), "model/open")
        at |= dict.fromkeys(("late", "stuck"), "answer/score")
        if message["method"] == at.get(MODE, "context/read"):
            misbehave(message)
            if MODE in ("refuses", "outdated", "empty", "slow", "deaf"):
                continue
        try:
            result = {"result": answer(message, blobs)}
        except OSError:
            result = {"error": {"code": -32000, "message": "the capture cannot be written"}}
        send({"id": message["id"]} | result)


main()
