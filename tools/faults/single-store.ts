// One nats-server, by default with `sync_interval: always`, as a process of its own. Where a
// scenario asks for a small disk it gets a real one, if this process may mount; else the server's
// own limit stands for it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startNatsServer } from "../../testkit/nats-server.ts";
import type { SmallDisk, Store } from "./scenario.ts";

interface SingleStoreOptions {
  /** Default: what the tests run against. */
  readonly binary?: string | undefined;
  /** `always` (the default), or a duration. */
  readonly syncInterval?: string | undefined;
  /** The store lies on a disk of this size. */
  readonly diskBytes?: number | undefined;
  /** What JetStream may keep on disk in all. */
  readonly fileStoreBytesMax?: number | undefined;
}

/** Room for streams with the default limits. It is not taken before it is written. */
const fileStoreBytesMaxDefault = 64 * 1_073_741_824;

/** The caller calls remove() in the end. */
export async function createSingleStore(options: SingleStoreOptions = {}): Promise<Store> {
  const { binary, syncInterval, diskBytes } = options;
  const { fileStoreBytesMax = fileStoreBytesMaxDefault } = options;
  const disk = diskBytes === undefined ? undefined : mountSmallDisk(diskBytes);
  const node = await startNatsServer({
    ...(binary === undefined ? {} : { binary }),
    ...(syncInterval === undefined ? {} : { syncInterval }),
    ...(disk === undefined ? {} : { storeDir: disk.folder }),
    maxFileStore: fileStoreBytesMax,
  });
  return {
    gatewayUrl: node.url,
    readerUrl: node.url,
    replicas: 1,
    nodes: [node],
    ...(disk === undefined ? {} : { disk }),
    leaderOf: async () => node,
    async remove() {
      await node.remove();
      disk?.unmount();
    },
  };
}

/**
 * A disk in memory. Undefined where it cannot be mounted: not root, not Linux, or a container
 * without the right.
 */
function mountSmallDisk(
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
  // A mount outlives the process that made it.
  process.once("exit", unmount);
  return {
    folder,
    fill() {
      try {
        writeFileSync(filler, Buffer.alloc(bytes));
      } catch (error) {
        // As much as there is room for has been written.
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
