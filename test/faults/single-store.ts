// One nats-server, by default with `sync_interval: always`. If this process may not mount a small
// disk, the server's own limit is used.

import { startNatsServer } from "../kit/nats-server.ts";
import type { Store } from "./scenario.ts";
import { mountSmallDisk } from "./small-disk.ts";

interface SingleStoreOptions {
  readonly binary?: string | undefined;
  readonly syncInterval?: string | undefined;
  readonly diskBytes?: number | undefined;
  readonly fileStoreBytesMax?: number | undefined;
}

const fileStoreBytesMaxDefault = 64 * 1_073_741_824;

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
