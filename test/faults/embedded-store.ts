import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  type ConnectionNote,
  readConnectionNote,
} from "../../src/platform/embedded/nats-config.ts";
import { identify, isRunning, untilGone } from "../../src/platform/embedded/process-identity.ts";
import type { TestNatsServer } from "../kit/nats-server.ts";
import type { Store } from "./scenario.ts";
import { mountSmallDisk } from "./small-disk.ts";

/**
 * Uses a disk of `diskBytes` if this process may mount a disk. The store can be read after a
 * gateway has been started with PENSTOCK_DATA_DIR=`dataDir`.
 */
export function createEmbeddedStore(diskBytes?: number): Store & { readonly dataDir: string } {
  const disk = diskBytes === undefined ? undefined : mountSmallDisk(diskBytes);
  const dataDir = mkdtempSync(path.join(disk?.folder ?? tmpdir(), "penstock-faults-data-"));
  const removeFolder = (): void =>
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  // The gateway's nats-server would end later and still write to the folder, so it is killed before
  // the folder is removed.
  const endWithProcess = (): void => {
    const left = readConnectionNote(dataDir);
    if (left !== undefined && isRunning(left, process)) process.kill(left.pid, "SIGKILL");
    removeFolder();
  };
  process.once("exit", endWithProcess);

  function note(): ConnectionNote {
    const found = readConnectionNote(dataDir);
    if (found === undefined)
      throw new Error("find the embedded nats-server: no note in the data folder");
    return found;
  }

  const signal = (name: NodeJS.Signals): void => void process.kill(note().pid, name);
  const end = async (name: NodeJS.Signals): Promise<void> => {
    const identity = identify(note().pid, process);
    signal(name);
    if (identity !== undefined) await untilGone(identity, process);
  };
  const node: TestNatsServer = {
    get url() {
      return note().url;
    },
    get port() {
      return Number(new URL(note().url).port);
    },
    get pid() {
      return note().pid;
    },
    storeDir: path.join(dataDir, "jetstream"),
    get token() {
      return note().token;
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    async restart() {
      throw new Error("restart the embedded nats-server: only the gateway does that");
    },
    async remove() {},
    log: () => "",
  };
  return {
    dataDir,
    gatewayUrl: "",
    get readerUrl() {
      return note().url;
    },
    get readerToken() {
      return note().token;
    },
    replicas: 1,
    nodes: [node],
    ...(disk === undefined ? {} : { disk }),
    leaderOf: async () => node,
    async remove() {
      process.removeListener("exit", endWithProcess);
      removeFolder();
      disk?.unmount();
    },
  };
}
