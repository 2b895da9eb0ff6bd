import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? 4);

/**
 * Each thread opens a named pipe without a writer, and waits until the returned function ends the
 * wait.
 */
export function occupyThreadPool(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "penstock-test-pool-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const opened = Array.from({ length: threads }, () => open(pipe, "r"));
  return async () => {
    // This process is also a reader, so opening for writing does not block.
    const writer = openSync(pipe, constants.O_RDWR);
    for (const handle of await Promise.all(opened)) await handle.close();
    closeSync(writer);
    rmSync(folder, { recursive: true });
  };
}
