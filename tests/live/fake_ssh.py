"""Like `ssh -T HOST COMMAND...`: another folder, a bare environment, a login's words, one more shell. Of HOST:

nowhere cannot be reached, unknown has a key that nobody knows, locked asks for a password, drops loses the connection
in the middle of the third answer.
"""

import os
import subprocess
import sys

HOST, WORDS = sys.argv[1], sys.argv[2:]
FAILS = {
    "nowhere": "ssh: connect to host nowhere port 22: Connection refused",
    "locked": "me@locked: Permission denied (publickey,password).",
    "unknown": "Host key verification failed.",
}
if HOST in FAILS:
    sys.exit(print(FAILS[HOST], end="\r\n", file=sys.stderr) or 255)
environment = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C"}
with subprocess.Popen(
    ["sh", "-c", " ".join(WORDS)], cwd="/", env=environment, stdout=subprocess.PIPE, bufsize=0
) as there:
    assert there.stdout
    os.write(1, b"Last login: today\r\n")
    seen = b""
    while piece := os.read(there.stdout.fileno(), 1 << 16):
        seen += piece
        at = [i for i in range(len(seen)) if seen.startswith(b"Content-Length", i)]
        if HOST == "drops" and len(at) > 2:
            os.write(1, piece[: max(0, at[2] + 8 - (len(seen) - len(piece)))])
            print("client_loop: send disconnect: Broken pipe\r", file=sys.stderr, flush=True)
            os._exit(255)
        os.write(1, piece)
    sys.exit(there.wait())
