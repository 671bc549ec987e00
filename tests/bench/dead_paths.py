"""Paths on which every access stalls, as below a network mount whose server is gone.

`dead_mount()` mounts a real file system of the kernel's (FUSE) that answers nothing: whoever looks at a path below it
sleeps there. With `deaf=True` its requests are taken and never answered: then the kernel lets no signal through, not
even SIGKILL, and the process is in uninterruptible sleep (state D), as below a hard NFS mount. At the end of the block
the mount goes away, and all that slept there wakes up with an error.

It takes the right to mount (root) and /dev/fuse.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from .parts import missing_part

_DETACH = 2  # MNT_DETACH

# The kernel's first request, the question whether somebody may enter, and what is written and read for them
# (include/uapi/linux/fuse.h).
_INIT, _ACCESS = 26, 34
_HEAD = struct.Struct("<IIQQIIII")  # length, request, its number, node, uid, gid, pid, padding
_ANSWER = struct.Struct("<IiQ")  # length, error, number of the request
_INIT_OUT = struct.Struct("<IIIIHHIIHHI7I")
_VERSION = (7, 31)


@contextlib.contextmanager
def dead_mount(deaf: bool = False) -> Iterator[Path]:
    """A folder below which nothing answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    # Not below a test's own folder: pytest would wait for it where it cleans up.
    folder = Path(tempfile.mkdtemp(prefix="cudadoctor-dead-"))
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        folder.rmdir()
        missing_part("dead mounts", f"/dev/fuse cannot be used here ({error.strerror})")
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"dead", bytes(folder), b"fuse", 0, options.encode()):
        reason = os.strerror(ctypes.get_errno())
        os.close(device)
        folder.rmdir()
        missing_part("dead mounts", f"mounting takes root ({reason})")
    stopped, stop = os.pipe()
    server = threading.Thread(target=_serve, args=(device, stopped, deaf), daemon=True)
    server.start()
    try:
        os.access(folder, os.X_OK)  # from here on the kernel asks nobody who may enter: it can be a working folder
        yield folder
    finally:
        os.close(stop)
        server.join(10)
        libc.umount2(bytes(folder), _DETACH)
        os.close(device)  # all that slept below wakes up with an error
        os.close(stopped)
        folder.rmdir()


def _serve(device: int, stopped: int, deaf: bool) -> None:
    """Agrees with the kernel on the protocol, and answers nothing that comes after it."""
    poll = select.poll()
    poll.register(device, select.POLLIN)
    poll.register(stopped, select.POLLHUP)
    while True:
        if stopped in [descriptor for descriptor, _ in poll.poll()]:
            return
        request = os.read(device, 1 << 18)
        _, kind, number, *_ = _HEAD.unpack_from(request)
        if kind == _INIT:
            body = _INIT_OUT.pack(*_VERSION, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)
            os.write(device, _ANSWER.pack(_ANSWER.size + len(body), 0, number) + body)
        elif kind == _ACCESS:
            os.write(device, _ANSWER.pack(_ANSWER.size, -errno.ENOSYS, number))
            if not deaf:
                poll.unregister(device)
