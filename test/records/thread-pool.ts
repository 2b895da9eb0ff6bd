// Keeps libuv's thread pool busy, so that a background scan that is started now has to queue.

import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? 4);

/**
 * Each thread opens a named pipe that nobody writes to, and waits there until the function that is
 * given ends it.
 */
export function occupyThreadPool(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "penstock-test-pool-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const opened = Array.from({ length: threads }, () => open(pipe, "r"));
  return async () => {
    // With this process as the reader, too, the opening for writing waits for nobody.
    const writer = openSync(pipe, constants.O_RDWR);
    for (const handle of await Promise.all(opened)) await handle.close();
    closeSync(writer);
    rmSync(folder, { recursive: true });
  };
}
