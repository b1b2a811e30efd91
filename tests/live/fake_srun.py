"""Like `srun COMMAND...`: a session of its own on a node that keeps the command's input open whatever happens to srun.

The job ends with srun's input and when srun gets SIGTERM. Where srun is killed, it goes on.
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
    cancel()


signal.signal(signal.SIGTERM, cancel)
threading.Thread(target=relay, daemon=True).start()
os._exit(JOB.wait() & 255)
