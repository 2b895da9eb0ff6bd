// A lock on a file or folder that the kernel holds for us: seen by every process of the machine
// whatever its pid namespace, and let go by the kernel alone, when the last process that has the
// descriptor is gone. Node has no flock(2), so a program of the host makes the call on our
// descriptor: the lock belongs to what was opened, and stays with us when that program ends.

import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync, statSync } from "node:fs";

export interface KernelLock {
  /** The locked descriptor. A process that inherits it holds the lock too. */
  readonly fd: number;
  /** The inode that the lock is on: its path can later name another file. */
  readonly inode: string;
  release(): void;
}

/**
 * `busy`: another process has the lock. `unknown`: nothing on this host can tell, or the file
 * system has no such locks.
 */
export type KernelLockOutcome = KernelLock | "busy" | "unknown";

const python =
  "import fcntl, sys\ntry: fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: sys.exit(1)";
const perl = 'open(my $lock, "<&=", 3) or die; flock($lock, 6) or exit($!{EWOULDBLOCK} ? 1 : 2)';

/**
 * The programs that can take the lock. `flock` is util-linux's or BusyBox's; most hosts without it
 * have Python or Perl. Each ends with 1, and prints nothing, when another process has the lock.
 */
const programs: readonly (readonly [string, ...string[]])[] = [
  ["flock", "-n", "-x", "3"],
  ["python3", "-c", python],
  ["perl", "-MErrno", "-e", perl],
];
const timeoutMs = 10_000;

/**
 * Takes the lock on a file. Throws what opening the file throws. The file is never removed: a
 * second process could then lock a new file of that name while the first still holds the old one.
 */
export function takeKernelLock(file: string): KernelLockOutcome {
  return lockOn(openSync(file, "a", 0o600), file);
}

/**
 * Takes the lock on the folder itself, which stays the same inode whatever is deleted in it. Throws
 * what opening the folder throws.
 */
export function takeFolderLock(folder: string): KernelLockOutcome {
  return lockOn(openSync(folder, "r"), folder);
}

function lockOn(fd: number, path: string): KernelLockOutcome {
  for (const [program, ...args] of programs) {
    const { status, stderr, error } = spawnSync(program, args, {
      stdio: ["ignore", "ignore", "pipe", fd],
      encoding: "utf8",
      timeout: timeoutMs,
    });
    if (status === 0) {
      const inode = inodeOf(fstatSync(fd, { bigint: true }));
      if (inode === inodeAt(path)) return { fd, inode, release: () => closeSync(fd) };
      // The path was deleted or replaced after we opened it: the next try locks what is there now.
      closeSync(fd);
      return "busy";
    }
    if (error === undefined && status === 1 && stderr.trim() === "") {
      closeSync(fd);
      return "busy";
    }
  }
  closeSync(fd);
  return "unknown";
}

/** Undefined when nothing is at the path. */
export function inodeAt(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : inodeOf(stats);
}

/** The inode without the device, which containers may number differently. */
function inodeOf({ ino }: { readonly ino: bigint }): string {
  return String(ino);
}
