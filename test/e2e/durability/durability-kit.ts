// A gateway under load, a copy of its store after a power cut, and the content of the copy. If the
// page cache cannot be inspected, the copy includes all data, and a note reports this.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";
import { startEmbeddedNats } from "../../../src/platform/embedded/nats-server.ts";
import {
  readFrames,
  startTestGateway,
  type TestGateway,
  type TestProject,
} from "../../kit/gateway.ts";
import { startNatsServer, type TestNatsServer, untilStopped } from "../../kit/nats-server.ts";
import { binary, silent } from "../../kit/processes.ts";

const script = path.resolve(import.meta.dirname, "../../faults/on-disk-copy.py");
const streamBytesMax = 16 * 1_048_576;

const smallBlocks = { PENSTOCK_STREAM_BYTES_MAX: String(streamBytesMax) };

interface PageCache {
  readonly folder: string;
  readonly isTold: boolean;
}

export function onDisk(): PageCache {
  const cache = path.resolve(import.meta.dirname, "../../../.cache");
  mkdirSync(cache, { recursive: true });
  const able = [tmpdir(), cache].find(
    (parent) => spawnSync("python3", [script, "probe", parent]).status === 0,
  );
  const folder = mkdtempSync(path.join(able ?? tmpdir(), "penstock-test-disk-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  if (able === undefined) {
    console.warn(
      "note: the page cache cannot be looked into here (Linux 6.5, python3 and a file system on a disk are needed): a power cut is not imitated, a kill is",
    );
  }
  return { folder, isTold: able !== undefined };
}

interface StoreUnderTest
  extends Pick<TestNatsServer, "url" | "token" | "storeDir" | "freeze" | "thaw"> {}

export async function embeddedStore(folder: string): Promise<StoreUnderTest> {
  const dataDir = path.join(folder, "data");
  const options = {
    dataDir,
    binary,
    streamBytesTotal: 2 * streamBytesMax,
    host: process,
    log: silent,
  };
  const embedded = await startEmbeddedNats(options);
  onTestFinished(() => {
    process.kill(embedded.pid, "SIGCONT");
    return embedded.close();
  });
  return {
    url: embedded.url,
    token: embedded.token,
    storeDir: path.join(dataDir, "jetstream"),
    freeze() {
      process.kill(embedded.pid, "SIGSTOP");
      untilStopped(embedded.pid);
    },
    thaw: () => void process.kill(embedded.pid, "SIGCONT"),
  };
}

export async function lazyStore(folder: string): Promise<StoreUnderTest> {
  const server = await startNatsServer({ syncInterval: "2m", storeDir: path.join(folder, "lazy") });
  onTestFinished(() => server.remove());
  return server;
}

interface LoadedGateway {
  readonly gateway: TestGateway;
  readonly project: TestProject;
  readonly acknowledged: Set<string>;
  wave(): Promise<void>;
  single(): Promise<void>;
}

const clients = 8;
const requestsEach = 4;
const largeChars = 200_000;

export async function loadedGateway(store: StoreUnderTest): Promise<LoadedGateway> {
  const gateway = await startTestGateway({ server: store as TestNatsServer, env: smallBlocks });
  onTestFinished(() => gateway.stop());
  const project = await gateway.project();
  const acknowledged = new Set<string>();
  let made = 0;

  async function post(events: number, extra: object, isHistorical = made % 5 === 0): Promise<void> {
    const ids = Array.from({ length: events }, () => `e${made++}`);
    const batch = ids.map((id) => ({ event: "e", distinct_id: "d", properties: { id, ...extra } }));
    const historical = isHistorical ? { historical_migration: true } : {};
    const answer = await gateway.post("/batch/", { api_key: project.key, batch, ...historical });
    if (answer.status !== 200 || answer.json["accepted"] !== events)
      throw new Error(`post: ${JSON.stringify(answer)}`);
    for (const id of ids) acknowledged.add(id);
  }

  async function client(number: number): Promise<void> {
    for (let turn = 0; turn < requestsEach; turn++) {
      const events = turn % 2 === 0 ? 1 : 7;
      // Every wave sends the same amount in each lane, so that the start of new blocks does not
      // depend on chance.
      const isLarge = number <= 1 && turn < 3;
      if (isLarge) await post(events, { padding: "x".repeat(largeChars) }, number === 1);
      else await post(events, {});
    }
  }

  return {
    gateway,
    project,
    acknowledged,
    wave: async () =>
      void (await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))),
    single: () => post(1, {}),
  };
}

export interface PowerCut {
  readonly storeDir: string;
  readonly lost: Readonly<Record<string, number>>;
}

/** Copies the store as it is on disk into a separate folder. Freezes the server during the copy. */
export function cutPower(store: StoreUnderTest, { folder, isTold }: PageCache): PowerCut {
  const storeDir = path.join(mkdtempSync(path.join(folder, "cut-")), "store");
  store.freeze();
  try {
    if (isTold) return { storeDir, lost: run("copy", store.storeDir, storeDir) };
    cpSync(store.storeDir, storeDir, { recursive: true });
    return { storeDir, lost: {} };
  } finally {
    store.thaw();
  }
}

export function notOnDisk(store: StoreUnderTest): Readonly<Record<string, number>> {
  return run("lost", store.storeDir);
}

function run(...args: string[]): Record<string, number> {
  return JSON.parse(execFileSync("python3", [script, ...args], { encoding: "utf8" })) as Record<
    string,
    number
  >;
}

export async function idsIn(storeDir: string, { project }: LoadedGateway): Promise<Set<string>> {
  const server = await startNatsServer({ storeDir });
  try {
    const connection = await connect({ servers: server.url });
    try {
      const lanes = await Promise.all(
        ["live", "historical"].map((lane) =>
          readFrames(connection, `penstock.${lane}.*.${project.id}`).catch(() => []),
        ),
      );
      return new Set(
        lanes
          .flat()
          .flatMap(({ events }) => events.map(({ properties }) => String(properties["id"]))),
      );
    } finally {
      await connection.close();
    }
  } finally {
    await server.remove();
  }
}

export function missing(acknowledged: ReadonlySet<string>, found: ReadonlySet<string>): string[] {
  return [...acknowledged].filter((id) => !found.has(id));
}

export function blocksOf(storeDir: string, lane: "LIVE" | "HISTORICAL" = "LIVE"): string[] {
  const folder = path.join(storeDir, "jetstream", "$G", "streams", `PENSTOCK_${lane}_0`, "msgs");
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(".blk"));
  return names
    .sort((left, right) => Number.parseInt(left, 10) - Number.parseInt(right, 10))
    .map((name) => path.join(folder, name));
}
