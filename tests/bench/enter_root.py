"""Runs a command in a mount namespace of its own whose root shows another machine.

    python enter_root.py SPECIFICATION.json COMMAND...

A program on its own (nothing is imported from the bench): it becomes the command. Every path keeps its place;
the specification maps paths to what is there instead: {"file": base64 text, "mode": 420}, {"link": target},
{"folder": true} (empty), {"absent": true}, {"device": [major, minor], "mode": 438} or {"shm": bytes}.

How: a tmpfs becomes the new root. What no path of the specification touches is bound from the real root. A folder
on the way to such a path is made anew, with a link to each of its other entries; the real ones lie below
/.real. Exit code 98: the kernel does not let us make a namespace.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import json
import os
import stat
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
NOT_ALLOWED = 98

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()):
        code = ctypes.get_errno()
        raise OSError(code, f"mount {source} on {target}: {os.strerror(code)}")


def unshare() -> None:
    """A mount namespace; for a user who is not root, inside a user namespace in which he is."""
    user, group = os.getuid(), os.getgid()
    flags = CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER
    if libc.unshare(flags):
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")
    if flags & CLONE_NEWUSER:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


Tree = dict[Any, Any]  # name -> Tree, or a leaf of the specification under the key None


def tree_of(specification: dict[str, Any]) -> Tree:
    tree: Tree = {}
    for path, leaf in specification.items():
        at = tree
        for part in path.strip("/").split("/"):
            at = at.setdefault(part, {})
        at[None] = leaf
    return tree


def build(new: str, real: str, tree: Tree, top: bool) -> None:
    """Fills the folder `new` with the entries of `tree`, and with what else the folder `real` holds."""
    below = "/.real" + real
    entries = os.listdir(real) if os.path.isdir(real) else []
    for name in sorted({*entries, *(n for n in tree if n is not None)}):
        if top and name == ".real":
            continue
        target, source = os.path.join(new, name), os.path.join(real, name)
        branch = tree.get(name)
        if branch is None:
            if not top:
                os.symlink(os.path.join(below, name), target)
            elif os.path.islink(source):
                os.symlink(os.readlink(source), target)
            elif os.path.isdir(source):
                os.mkdir(target)
                mount(source, target, flags=MS_BIND | MS_REC)
            elif os.path.isfile(source):
                open(target, "w").close()
                mount(source, target, flags=MS_BIND)
        elif None in branch and not branch[None].get("folder"):
            place(target, branch[None])
        else:
            if os.path.islink(source) and source != "/proc/self":
                # /lib64 -> usr/lib64 and the like: the specification names the real place.
                raise SystemExit(f"{source} is a link to {os.readlink(source)}: give the path behind it")
            os.mkdir(target)
            build(target, "/nowhere" if None in branch else source, {k: v for k, v in branch.items() if k}, False)


def place(target: str, leaf: dict[str, Any]) -> None:
    if "file" in leaf:
        with open(target, "wb") as file:
            file.write(base64.b64decode(leaf["file"]))
        os.chmod(target, leaf.get("mode", 0o644))
    elif "link" in leaf:
        os.symlink(leaf["link"], target)
    elif "shm" in leaf:
        os.mkdir(target)
        mount("shm", target, "tmpfs", data=f"size={leaf['shm']}")
    elif "device" in leaf:
        try:
            os.mknod(target, stat.S_IFCHR | 0o600, os.makedev(*leaf["device"]))
            os.chmod(target, leaf["mode"])
        except PermissionError:  # in a user namespace: the null device shows in its place
            open(target, "w").close()
            mount("/dev/null", target, flags=MS_BIND)


def main() -> None:
    with open(sys.argv[1]) as file:
        specification = json.load(file)
    here = os.getcwd()
    # Beside the specification, where it is in nobody's way; only this namespace sees what is mounted there.
    new = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "root")
    os.makedirs(new, exist_ok=True)
    try:
        unshare()
        mount("root", new, "tmpfs", data="mode=755")
        os.mkdir(new + "/.real")
        mount("/", new + "/.real", flags=MS_BIND | MS_REC)
    except OSError as problem:
        if problem.errno in (errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EINVAL):
            print(problem, file=sys.stderr)
            raise SystemExit(NOT_ALLOWED) from None
        raise
    build(new, "/", tree_of(specification), True)
    os.chroot(new)
    os.chdir(here)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
