// A lock on a file or folder that the kernel holds for us: seen by every process of the machine
// whatever its pid namespace, and let go by the kernel alone, when the last process that has the
// descriptor is gone. Node has no flock(2), so a program of the host makes the call on our
// descriptor: the lock belongs to what was opened, and stays with us when that program ends.

import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync, statSync } from "node:fs";

export interface KernelLock {
  /** Whoever inherits it holds the lock too. */
  readonly fd: number;
  /** What the lock is on: a path can come to be another file's. */
  readonly inode: string;
  release(): void;
}

/**
 * `busy`: somebody has it. `unknown`: nothing here can tell, or the file system has no such locks.
 */
export type KernelLockOutcome = KernelLock | "busy" | "unknown";

const python =
  "import fcntl, sys\ntry: fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: sys.exit(1)";
const perl = 'open(my $lock, "<&=", 3) or die; flock($lock, 6) or exit($!{EWOULDBLOCK} ? 1 : 2)';

/**
 * The first is util-linux's or BusyBox's; the others are what most hosts have where there is none.
 * Each ends with 1, and without words, when somebody has the lock.
 */
const programs: readonly (readonly [string, ...string[]])[] = [
  ["flock", "-n", "-x", "3"],
  ["python3", "-c", python],
  ["perl", "-MErrno", "-e", perl],
];
const timeoutMs = 10_000;

/**
 * Throws what opening the file throws. The file stays: removing it would let two hold what each
 * takes for the lock.
 */
export function takeKernelLock(file: string): KernelLockOutcome {
  return lockOn(openSync(file, "a", 0o600), file);
}

/**
 * On the folder itself, which stays what it is whatever is deleted in it. Throws what opening it
 * throws.
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
      // Deleted or replaced while it was opened: the next try takes what is there now.
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

/** Undefined where there is nothing. */
export function inodeAt(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : inodeOf(stats);
}

/** Without the device, which containers may number differently. */
function inodeOf({ ino }: { readonly ino: bigint }): string {
  return String(ino);
}
