import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { SmallDisk } from "./scenario.ts";

/**
 * A disk in memory. undefined if this process cannot mount it: it is not root, not on Linux, or in
 * a container without the permission.
 */
export function mountSmallDisk(
  bytes: number,
): (SmallDisk & { folder: string; unmount(): void }) | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-faults-disk-"));
  const filler = path.join(folder, "filler");
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", folder], {
      stdio: "ignore",
    });
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const unmount = (): void => {
    execFileSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", unmount);
  return {
    folder,
    fill() {
      try {
        writeFileSync(filler, Buffer.alloc(bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    },
    free: () => rmSync(filler, { force: true }),
    unmount() {
      process.removeListener("exit", unmount);
      unmount();
    },
  };
}
