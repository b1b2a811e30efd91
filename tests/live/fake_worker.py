"""A worker without a model: `python3 fake_worker.py MODE [FOLDER] ...`. Modes that fail do so at the first request.

FOLDER holds what it serves: context.json (tokens, info) and LAYER_ROLE.f32. A selection's loss is a checksum of its
bits, so that a test can tell which bits arrived. Python's standard library is all it needs.
"""

import base64
import json
import os
import signal
import sys

MODE, FOLDER = sys.argv[1], sys.argv[2]
READ, WRITE = sys.stdin.buffer, sys.stdout.buffer
CONTEXT = os.path.join(FOLDER, "context.json")
SELECTIONS: dict = {}


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


def tensor(request: int, layer: int, role: str, info: dict, n: int) -> dict:
    with open(os.path.join(FOLDER, f"{layer}_{role}.f32"), "rb") as file:
        data = file.read()
    heads = info["num_q_heads" if role == "q" else "num_kv_heads"]
    shape = [heads, n, info["value_dim" if role == "v" else "head_dim"]]
    if MODE == "shape":
        shape[0] += 1
    for at in range(0, len(data), 5_000):
        part = data[at : at + 5_000]
        place = {"id": request, "offset": at, "of": len(data), "dtype": "f32", "shape": shape}
        send({"method": "tensors/data", "params": place}, part)
        if MODE == "part":
            break
    return {"bytes": len(data)}


def rows(params: dict, row: object) -> dict:
    return {"rows": [{"selection_id": one} | row(one) for one in params["selection_ids"]]}  # type: ignore[operator]


def scored(selection: str | None) -> dict:
    nll = SELECTIONS[selection] if selection else 0.5
    return {"nll": nll, "losses": [None, nll], "kl": [None, 0.25], "kl_mean": 0.25, "flip_rate": 0.5}


def answer(message: dict, blobs: list[bytes]) -> dict:
    method, params = message["method"], message["params"]
    if method == "initialize":
        return {"protocol": [2 if MODE == "newer" else 1, 0], "worker": {"python": "fake"}}
    if method == "model/open":
        return {"model_id": "m"}
    with open(CONTEXT, encoding="utf-8") as file:
        context = json.load(file)
    tokens, info = context["tokens"], context["info"]
    if method == "text/tokenize":
        texts = [base64.b64encode(text.encode()).decode() for text in context["texts"]]
        return {"ids": tokens["ids"], "segments": tokens["segments"], "bytes": texts}
    if method == "context/read":
        return {"context_id": "c", "info": info, "tokens": tokens, "capture_hash": context["hash"]}
    if method == "tensors/get":
        return tensor(message["id"], params["layer"], params["role"], info, len(tokens["ids"]))
    if method == "selection/set":
        name = params["name"] + str(params["generation"])
        words = json.dumps(params["rows"]).replace(" ", "").encode() + b"".join(blobs)
        SELECTIONS[name] = 0
        for byte in words:
            SELECTIONS[name] = (SELECTIONS[name] * 31 + byte) % 1_000_003
        return {"selection_id": name, "kept": 0, "bytes": 4096}
    if method == "answer/score":
        return rows(params, scored)
    text = {"ids": [1, 2], "text": "forty two"}
    return rows(params, lambda one: text | {"first_divergence": 1 if one else None})


def misbehave(message: dict) -> None:
    """What a worker must not do, at the request `message`."""
    if MODE == "dies":
        print("Traceback (most recent call last):\n  boom\nRuntimeError: the weights are gone", file=sys.stderr)
        sys.exit(3)
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hangs":
        signal.pause()
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
    if MODE == "deaf":
        send({"method": "$/progress", "params": {"id": message["id"], "stage": "layer", "done": 1, "total": 4}})
        signal.pause()


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
        at = {"dies": "model/open"}.get(MODE, "context/read")
        if message["method"] == at:
            misbehave(message)
            if MODE in ("refuses", "outdated", "empty", "slow", "deaf"):
                continue
        send({"id": message["id"], "result": answer(message, blobs)})


main()
