// Keeps libuv's thread pool busy, so that a background scan that is started now has to queue.

import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(pbkdf2);

/**
 * Far more work than the pool has threads. Fulfilled when all of it is done; for some tenths of a
 * second it is not.
 */
export async function occupyThreadPool(): Promise<void> {
  await Promise.all(
    Array.from({ length: 16 }, () => derive("password", "salt", 200_000, 32, "sha256")),
  );
}
