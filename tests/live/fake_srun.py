"""Like `srun COMMAND...` with a command that is busy: a session of its own on a node that keeps its input open.

SIGTERM to srun ends the job. Where srun is killed, the job goes on.
"""

import os
import signal
import subprocess
import sys
import threading

READ, WRITE = os.pipe()
JOB = subprocess.Popen(sys.argv[1:], stdin=READ, pass_fds=[WRITE], start_new_session=True)


def cancel(*_: object) -> None:
    JOB.kill()
    os._exit(143)


def relay() -> None:
    while piece := os.read(0, 1 << 16):
        os.write(WRITE, piece)


signal.signal(signal.SIGTERM, cancel)
threading.Thread(target=relay, daemon=True).start()
os._exit(JOB.wait() & 255)
