// One nats-server, by default with `sync_interval: always`, as a process of its own. Where a
// scenario asks for a small disk it gets a real one, if this process may mount; else the server's
// own limit stands for it.

import { startNatsServer } from "../kit/nats-server.ts";
import type { Store } from "./scenario.ts";
import { mountSmallDisk } from "./small-disk.ts";

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
