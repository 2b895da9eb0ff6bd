"""Copies a folder as a power cut at this moment would leave it: without data that is only in the page cache.

cachestat(2) (Linux 6.5) reports how many pages of a range are dirty or being written. Such a page is filled with zeros, or
cut off if nothing follows it, like a file whose growth was never written. The first such page of a run is copied as it is:
data that was synced earlier can begin in it, and a disk never loses that when more is appended. Names and sizes of files are
copied unchecked: no system call reports whether a directory's entry is on disk.

  on-disk-copy.py probe FOLDER       exit code 3 if pages in FOLDER cannot be distinguished this way
  on-disk-copy.py lost FOLDER        prints the files with such pages, and their number of bytes, as JSON
  on-disk-copy.py copy FOLDER TARGET the same, and creates the copy
"""

import ctypes
import json
import os
import sys

CACHESTAT = 451
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)


class Range(ctypes.Structure):
    _fields_ = [("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class Stat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")]


def not_on_disk(descriptor, offset, length):
    """Pages of the range that are dirty or being written."""
    stat = Stat()
    asked = Range(offset, length)
    if libc.syscall(CACHESTAT, descriptor, ctypes.byref(asked), ctypes.byref(stat), 0) != 0:
        raise OSError(ctypes.get_errno(), "cachestat")
    return stat.dirty + stat.writeback


def lost_pages(descriptor, size):
    """Offsets of the pages that a power cut would lose."""
    if size == 0 or not_on_disk(descriptor, 0, size) == 0:
        return []
    return [offset for offset in range(0, size, PAGE) if not_on_disk(descriptor, offset, PAGE) > 0]


def on_disk(content, not_written):
    kept = bytearray(content)
    lost = set(not_written) & {offset + PAGE for offset in not_written}
    for offset in lost:
        end = min(offset + PAGE, len(kept))
        kept[offset:end] = bytes(end - offset)
    while kept and (len(kept) - 1) // PAGE * PAGE in lost:
        del kept[(len(kept) - 1) // PAGE * PAGE :]
    return bytes(kept)


def walk(folder, target):
    report = {}
    for here, folders, files in os.walk(folder):
        relative = os.path.relpath(here, folder)
        for name in folders if target else []:
            os.makedirs(os.path.join(target, relative, name), exist_ok=True)
        for name in files:
            try:
                descriptor = os.open(os.path.join(here, name), os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                size = os.fstat(descriptor).st_size
                lost = lost_pages(descriptor, size)
                if lost:
                    report[os.path.normpath(os.path.join(relative, name))] = len(lost) * PAGE
                if target:
                    with open(os.path.join(target, relative, name), "wb") as copy:
                        copy.write(on_disk(os.pread(descriptor, size, 0), lost))
            finally:
                os.close(descriptor)
    return report


def probe(folder):
    """A page must be dirty when written and clean when synced, which fails on in-memory and overlay file systems."""
    path = os.path.join(folder, "cachestat-probe")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, b"x" * 3 * PAGE)
        before = not_on_disk(descriptor, 0, 3 * PAGE)
        os.fsync(descriptor)
        return before == 3 and not_on_disk(descriptor, 0, 3 * PAGE) == 0
    except OSError:
        return False
    finally:
        os.close(descriptor)
        os.unlink(path)


def main(action, folder, target=None):
    if action == "probe":
        return 0 if probe(folder) else 3
    if target:
        os.makedirs(target)
    json.dump(walk(folder, target), sys.stdout)
    return 0


sys.exit(main(*sys.argv[1:]))
