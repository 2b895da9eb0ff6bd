import { startGateway } from "../../src/app/gateway.ts";
import { createLog } from "../../src/platform/base/log.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import type { NetworkKind } from "./cluster-network.ts";
import { createClusterStore } from "./cluster-store.ts";
import { createEmbeddedStore } from "./embedded-store.ts";
import { farStore } from "./far-store.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { diskFolder } from "./page-cache.ts";
import { createProxiedStore } from "./proxied-store.ts";
import type { GatewayProcess, Scenario, ScenarioContext, Store } from "./scenario.ts";
import { createSingleStore } from "./single-store.ts";

export interface Site {
  readonly store: Store;
  readonly gateway: GatewayProcess;
  readonly clock?: NonNullable<ScenarioContext["clock"]>;
  remove(): Promise<void>;
}

type SiteOptions = Pick<
  Scenario,
  "topology" | "env" | "diskBytes" | "fileStoreBytesMax" | "inProcess" | "onDisk"
>;

const streamBytesMaxDefault = String(1_073_741_824);

interface SiteMeans {
  readonly binary: string;
  readonly syncInterval?: string | undefined;
  readonly network: NetworkKind;
  readonly delayMs: number;
}

/** Rejects if a part does not start, after stopping the started parts. */
export async function createSite(options: SiteOptions, means: SiteMeans): Promise<Site> {
  if (options.topology === "embedded") return await createEmbeddedSite(options, means);
  const store = await createStoreAt(options, means);
  const env = {
    PENSTOCK_NATS_URL: store.gatewayUrl,
    PENSTOCK_REPLICAS: String(store.replicas),
    PENSTOCK_STREAM_BYTES_MAX: streamBytesMaxDefault,
    ...options.env,
  };
  try {
    if (options.inProcess) return { store, ...(await startInProcess(env, store)) };
    const gateway = await startGatewayProcess({ command: "serve", env, place: store.gatewayPlace });
    return { store, gateway, remove: () => removeBoth(gateway, store) };
  } catch (error) {
    await store.remove();
    throw error;
  }
}

async function createStoreAt(options: SiteOptions, means: SiteMeans): Promise<Store> {
  const store = await createStore(options, means);
  if (means.delayMs === 0) return store;
  try {
    return await farStore(store, means.delayMs);
  } catch (error) {
    await store.remove();
    throw error;
  }
}

/**
 * Another process may take a port before the node uses it, and nodes of 2.10.27 may consider each
 * other offline from the start.
 */
async function createStore(options: SiteOptions, means: SiteMeans): Promise<Store> {
  for (let tries = 1; ; tries++) {
    try {
      return await tryStore(options, means);
    } catch (error) {
      const mayTryAgain = /address already in use|start a cluster: no leader/.test(String(error));
      if (tries === triesMax || !mayTryAgain) throw error;
    }
  }
}

const triesMax = 3;

async function tryStore(
  options: SiteOptions,
  { binary, syncInterval, network }: SiteMeans,
): Promise<Store> {
  const { topology, diskBytes, fileStoreBytesMax, onDisk } = options;
  const server = { binary, syncInterval };
  if (topology === "cluster" && onDisk)
    return await createClusterStore({ ...server, folder: diskFolder() });
  if (topology === "cluster") return await createClusterStore(server);
  if (topology === "networked") return await createClusterStore({ ...server, network });
  if (topology === "proxied") return await createProxiedStore(server);
  return await createSingleStore({ ...server, diskBytes, fileStoreBytesMax });
}

async function createEmbeddedSite(
  { env, diskBytes }: SiteOptions,
  { binary }: SiteMeans,
): Promise<Site> {
  const store = createEmbeddedStore(diskBytes);
  const own = {
    PENSTOCK_DATA_DIR: store.dataDir,
    PENSTOCK_NATS_SERVER: binary,
    PENSTOCK_STREAM_BYTES_MAX: streamBytesMaxDefault,
    ...env,
  };
  try {
    const gateway = await startGatewayProcess({ command: "up", env: own });
    return { store, gateway, remove: () => removeBoth(gateway, store) };
  } catch (error) {
    await store.remove();
    throw error;
  }
}

async function removeBoth(gateway: GatewayProcess, store: Store): Promise<void> {
  await gateway.kill("SIGKILL");
  await store.remove();
}

/**
 * Another process cannot set the clock of a process, so this gateway runs in this process. It
 * cannot be killed.
 */
async function startInProcess(
  env: Readonly<Record<string, string>>,
  store: Store,
): Promise<Omit<Site, "store">> {
  const read = readConfig(
    { PENSTOCK_HOST: "127.0.0.1", PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0", ...env },
    {},
  );
  if (!read.ok) throw new Error(`read settings: ${read.faults.join("; ")}`);
  let offsetMs = 0;
  const wallMs = () => Date.now() + offsetMs;
  const running = await startGateway(read.config, { log: createLog("error"), wallMs });
  const cannot = async (): Promise<void> => {
    throw new Error("end the gateway: it runs in this process");
  };
  return {
    gateway: {
      url: `http://127.0.0.1:${running.port}`,
      adminUrl: `http://127.0.0.1:${running.adminPort}`,
      pid: process.pid,
      workers: () => [],
      kill: cannot,
      restart: cannot,
      closings: () => [],
      log: () => "",
    },
    clock: {
      stepMs(ms) {
        offsetMs += ms;
      },
    },
    async remove() {
      await running.close();
      await store.remove();
    },
  };
}
