// A lock on a file that the kernel holds for us: seen by every process of the machine whatever its pid namespace, and let go by the
// kernel alone, when the last process that has the descriptor is gone. Node has no flock(2), so a program of the host makes the call
// on our descriptor: the lock belongs to what was opened, and stays with us when that program ends.

import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";

export interface KernelLock {
  /** Whoever inherits it holds the lock too. */
  readonly fd: number;
  release(): void;
}

/** `busy`: somebody has it. `unknown`: nothing here can tell, or the file system has no such locks. */
export type KernelLockOutcome = KernelLock | "busy" | "unknown";

const python =
  "import fcntl, sys\ntry: fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: sys.exit(1)";
const perl = 'open(my $lock, "<&=", 3) or die; flock($lock, 6) or exit($!{EWOULDBLOCK} ? 1 : 2)';

/** Of util-linux or BusyBox; where there is none, what most hosts have besides. Each ends with 1, and without words, when somebody has the lock. */
const programs: readonly (readonly [string, ...string[]])[] = [
  ["flock", "-n", "-x", "3"],
  ["python3", "-c", python],
  ["perl", "-MErrno", "-e", perl],
];
const timeoutMs = 10_000;

/** Throws what opening the file throws. The file stays: removing it would let two hold what each takes for the lock. */
export function takeKernelLock(file: string): KernelLockOutcome {
  const fd = openSync(file, "a", 0o600);
  for (const [program, ...args] of programs) {
    const { status, stderr, error } = spawnSync(program, args, {
      stdio: ["ignore", "ignore", "pipe", fd],
      encoding: "utf8",
      timeout: timeoutMs,
    });
    if (status === 0) return { fd, release: () => closeSync(fd) };
    if (error === undefined && status === 1 && stderr.trim() === "") {
      closeSync(fd);
      return "busy";
    }
  }
  closeSync(fd);
  return "unknown";
}
