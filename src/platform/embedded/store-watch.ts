// Restarts the embedded nats-server after its disk was full. This is necessary because a stream of
// nats-server 2.14 or newer stores nothing after a failed write. Older versions may disable
// JetStream or assign a sequence twice.

import { statfsSync } from "node:fs";
import type { Log } from "../base/log.ts";
import { pauseUntilAborted } from "../base/retry.ts";

interface StoreWatchOptions {
  readonly dataDir: string;
  readonly healthUrl: () => string | undefined;
  readonly restart: (reason: string) => void;
  readonly signal: AbortSignal;
  readonly log: Pick<Log, "error">;
}

const checkEveryMs = 1_000;
const healthMsMax = 1_000;
/** The pause doubles with each restart, until the server has been healthy for `wellMs`. */
const pauseMsMin = 5_000;
const pauseMsMax = 60_000;
const wellMs = 60_000;
const noRoomBytes = 65_536;
const enoughBytes = 4_194_304;
const enoughFiles = 16;

export async function watchStore(options: StoreWatchOptions): Promise<void> {
  const { dataDir, healthUrl, restart, signal, log } = options;
  let watched: string | undefined;
  let reason: string | undefined;
  let isLogged = false;
  let pauseMs = pauseMsMin;
  let restartedMonotonicMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    await pauseUntilAborted(checkEveryMs, signal, { ref: false });
    const url = healthUrl();
    if (url === undefined) continue;
    if (url !== watched) reason = undefined;
    watched = url;
    const room = roomIn(dataDir);
    if (room === "none") reason ??= "its disk was full";
    else reason ??= await writeError(url);
    if (signal.aborted) return;
    const sinceMs = performance.now() - restartedMonotonicMs;
    if (reason === undefined) {
      isLogged = false;
      if (sinceMs > wellMs) pauseMs = pauseMsMin;
    } else if (room !== "enough") {
      if (!isLogged) log.error({ dataDir }, noRoomFault);
      isLogged = true;
    } else if (sinceMs > pauseMs) {
      if (restartedMonotonicMs > 0) pauseMs = Math.min(2 * pauseMs, pauseMsMax);
      restartedMonotonicMs = performance.now();
      restart(reason);
    }
  }
}

export const noRoomFault =
  "disk of the data folder full: free some space; Penstock then restarts its nats-server";

/** Returns the free space of a folder. With `little`, nats-server cannot start. */
export function roomIn(folder: string): "enough" | "little" | "none" {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(folder);
    const bytes = bavail * bsize;
    // File systems without a limit on the number of files report 0 files.
    const filesFree = files === 0 ? enoughFiles : ffree;
    if (bytes < noRoomBytes || filesFree === 0) return "none";
    return bytes < enoughBytes || filesFree < enoughFiles ? "little" : "enough";
  } catch {
    return "enough";
  }
}

async function writeError(healthUrl: string): Promise<string | undefined> {
  try {
    const answer = await fetch(healthUrl, { signal: AbortSignal.timeout(healthMsMax) });
    const { error = "" } = (await answer.json()) as { readonly error?: string };
    return /write error/i.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}
