// Penstock compared with other programs on PATH that accept events over HTTP and store them
// durably. Every server has an empty store on the project's disk and answers after an fsync. CPU
// and memory include the server and its store.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Bench, inOrder } from "../harness/bench.ts";
import { type Child, startChild } from "../harness/child.ts";
import { type Load, runLoad } from "../harness/load.ts";
import { keyOf, workFolder } from "../harness/nats.ts";
import {
  machineCpuSeconds,
  memoryBytes,
  processTree,
  treeCpuSeconds,
} from "../harness/process-stats.ts";
import { batches, singles } from "./loads.ts";

interface PeerServer {
  readonly url: string;
  readonly processes: readonly Child[];
  /** Converts a load of Penstock's to the requests for the server. */
  readonly sent: (load: Load) => Load;
  /** The number of separately stored units in one request of the load. */
  readonly unitsOf: (load: Load) => number;
  readonly stored: () => Promise<number>;
}

interface Peer {
  readonly name: string;
  readonly programs: readonly string[];
  readonly start: (folder: string) => Promise<PeerServer>;
}

const root = resolve(import.meta.dirname, "../..");
const startMsMax = 60_000;
const settleMsMax = 10_000;
const warmUpSeconds = 1;

const peers: readonly Peer[] = [
  {
    name: "Penstock serve, embedded store",
    programs: [],
    start: (folder) => penstock(folder, "serve"),
  },
  { name: "Penstock up (with effects)", programs: [], start: (folder) => penstock(folder, "up") },
  {
    name: "Webdis + Redis, appendfsync always; a body is opaque",
    programs: ["webdis", "redis-server"],
    start: webdis,
  },
  {
    name: "nsqd, a sync per message; a body is opaque",
    programs: ["nsqd"],
    start: nsqd,
  },
  {
    name: "Bento to JetStream; a body is one message",
    programs: ["bento", "nats-server"],
    start: bento,
  },
];

export async function peersScenario(bench: Bench): Promise<void> {
  const present = peers.filter(({ programs }) => programs.every(isOnPath));
  const absent = peers.filter((peer) => !present.includes(peer));
  if (absent.length > 0)
    bench.remark(`not measured, because not on PATH: ${absent.map(({ name }) => name).join("; ")}`);
  const seconds = bench.quick ? 2 : 5;
  const loads = [singles(128, seconds), singles(512, seconds), batches(100, seconds)];
  const rounds = bench.rounds(3);
  for (let round = 1; round <= rounds; round++) {
    for (const peer of inOrder(present, round)) {
      for (const load of loads) {
        const values = await measure(peer, load, bench);
        bench.note({
          group: "peers",
          scenario: load.name,
          variant: peer.name,
          sync: "always",
          round,
          values,
        });
      }
    }
  }
}

async function measure(peer: Peer, load: Load, bench: Bench): Promise<Record<string, number>> {
  mkdirSync(workFolder, { recursive: true });
  const folder = mkdtempSync(join(workFolder, "peer-"));
  let server: PeerServer | undefined;
  try {
    server = await peer.start(folder);
    const { url, processes, sent, unitsOf, stored } = server;
    const own = sent(load);
    await runLoad(url, { ...own, seconds: warmUpSeconds }, bench.closedLoop);
    const storedBefore = await settled(stored);
    const cpuBefore = sum(processes, treeCpuSeconds);
    const machineBefore = machineCpuSeconds();
    const beganMs = performance.now();
    const run = await runLoad(url, own, bench.closedLoop);
    const wallSeconds = (performance.now() - beganMs) / 1_000;
    const cpu = sum(processes, treeCpuSeconds) - cpuBefore;
    const machineCores = (machineCpuSeconds() - machineBefore) / wallSeconds;
    const restBytes = sum(processes, (pid) =>
      processTree(pid).reduce<number>((total, each) => total + memoryBytes(each, "VmRSS"), 0),
    );
    const acknowledged = (run.requests - run.refused) * unitsOf(own);
    const storedUnits = (await settled(stored)) - storedBefore;
    const what = `${load.name}, ${peer.name}: ${acknowledged} acknowledged, ${storedUnits} stored`;
    if (run.refused > 0 || run.failed > 0 || acknowledged === 0)
      throw new Error(`${what}; ${run.refused} requests refused, ${run.failed} failed`);
    if (storedUnits < acknowledged) throw new Error(`${what}: acknowledged events are missing`);
    const events = (run.requests - run.refused) * load.eventsPerRequest;
    return {
      eventsPerSecond: events / run.seconds,
      serverCpuSecondsPerMillion: (cpu / events) * 1e6,
      restBytes,
      p50Ms: run.closedLoopMs?.p50 ?? Number.NaN,
      p99Ms: run.closedLoopMs?.p99 ?? Number.NaN,
      serverCores: cpu / wallSeconds,
      clientCores: run.clientCpuSeconds / wallSeconds,
      otherCores: Math.max(0, machineCores - (cpu + run.clientCpuSeconds) / wallSeconds),
    };
  } finally {
    for (const child of server?.processes ?? []) await child.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function penstock(folder: string, command: "serve" | "up"): Promise<PeerServer> {
  const main = join(root, "dist", "main.js");
  const env = {
    PENSTOCK_DATA_DIR: folder,
    PENSTOCK_HOST: "127.0.0.1",
    PENSTOCK_PORT: "0",
    PENSTOCK_ADMIN_PORT: "0",
    PENSTOCK_EFFECTS_PORT: "0",
  };
  const child = startChild({
    program: process.execPath,
    args: ["--max-semi-space-size=8", main, command],
    env,
  });
  const { port, adminPort } = await child.line((line) => {
    if (!line.includes('"gateway listening"')) return undefined;
    return JSON.parse(line) as { port: number; adminPort: number };
  }, startMsMax);
  const add = startChild({
    program: process.execPath,
    args: [main, "project", "add", "bench", "--key", keyOf(0)],
    env: { PENSTOCK_DATA_DIR: folder },
  });
  await add.finished(startMsMax);
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    const body = JSON.stringify({ api_key: keyOf(0), event: "e", distinct_id: "u" });
    return (await fetch(`${url}/capture/`, { method: "POST", body })).status === 200;
  });
  return {
    url,
    processes: [child],
    sent: (load) => load,
    unitsOf: (load) => load.eventsPerRequest,
    async stored() {
      const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      const counts = text.matchAll(/^penstock_events_total\{[^}]*outcome="stored"[^}]*\} (\S+)$/gm);
      return [...counts].reduce((total, [, value]) => total + Number(value), 0);
    },
  };
}

async function webdis(folder: string): Promise<PeerServer> {
  const [port, redisPort] = [await freePort(), await freePort()];
  const redis = startChild({
    program: "redis-server",
    args: [
      "--port",
      String(redisPort),
      "--bind",
      "127.0.0.1",
      "--dir",
      folder,
      "--appendonly",
      "yes",
      "--appendfsync",
      "always",
      "--save",
      "",
    ],
  });
  await until(() => answers(redisPort));
  const config = join(folder, "webdis.json");
  writeFileSync(
    config,
    JSON.stringify({
      redis_host: "127.0.0.1",
      redis_port: redisPort,
      redis_auth: null,
      http_host: "127.0.0.1",
      http_port: port,
      threads: 2,
      pool_size: 20,
      daemonize: false,
      websockets: false,
      database: 0,
      verbosity: 0,
      logfile: join(folder, "webdis.log"),
      acl: [{ enabled: ["*"] }],
      http_max_request_size: 33_554_432,
    }),
  );
  const child = startChild({ program: "webdis", args: [config] });
  await until(() => answers(port));
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    processes: [child, redis],
    sent: (load) => ({ ...load, path: "/RPUSH/events", method: "PUT" }),
    unitsOf: () => 1,
    async stored() {
      const answer = (await (await fetch(`${url}/LLEN/events`)).json()) as { LLEN: number };
      return answer.LLEN;
    },
  };
}

async function nsqd(folder: string): Promise<PeerServer> {
  const [port, tcpPort] = [await freePort(), await freePort()];
  const child = startChild({
    program: "nsqd",
    args: [
      `--http-address=127.0.0.1:${port}`,
      `--tcp-address=127.0.0.1:${tcpPort}`,
      `--data-path=${folder}`,
      "--mem-queue-size=0",
      "--sync-every=1",
      "--max-msg-size=33554432",
    ],
  });
  await until(() => answers(port));
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    processes: [child],
    sent: (load) => ({ ...load, path: "/pub?topic=events" }),
    unitsOf: () => 1,
    async stored() {
      const answer = await (await fetch(`${url}/stats?format=json&topic=events`)).json();
      const { topics = [] } = answer as { topics?: { message_count: number }[] };
      return topics[0]?.message_count ?? 0;
    },
  };
}

async function bento(folder: string): Promise<PeerServer> {
  const [port, natsPort, monitorPort] = [await freePort(), await freePort(), await freePort()];
  const natsConfig = join(folder, "nats.conf");
  writeFileSync(
    natsConfig,
    `listen: "127.0.0.1:${natsPort}"\nhttp: "127.0.0.1:${monitorPort}"\njetstream { store_dir: ${JSON.stringify(join(folder, "js"))}, sync_interval: always }\n`,
  );
  const nats = startChild({ program: "nats-server", args: ["-c", natsConfig] });
  await until(() => answers(natsPort));
  const { connect: connectNats } = await import("@nats-io/transport-node");
  const { jetstreamManager } = await import("@nats-io/jetstream");
  const connection = await connectNats({ servers: `127.0.0.1:${natsPort}` });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "EVENTS", subjects: ["events"] });
  const config = join(folder, "bento.yaml");
  writeFileSync(
    config,
    JSON.stringify({
      http: { enabled: false },
      input: { http_server: { address: `127.0.0.1:${port}`, path: "/post" } },
      output: {
        nats_jetstream: {
          urls: [`nats://127.0.0.1:${natsPort}`],
          subject: "events",
          max_in_flight: 1_024,
        },
      },
    }),
  );
  const child = startChild({ program: "bento", args: ["-c", config] });
  await until(() => answers(port));
  return {
    url: `http://127.0.0.1:${port}`,
    processes: [child, nats],
    sent: (load) => ({ ...load, path: "/post" }),
    unitsOf: () => 1,
    stored: async () => (await manager.streams.info("EVENTS")).state.messages,
  };
}

function isOnPath(program: string): boolean {
  try {
    execFileSync("which", [program], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function sum(processes: readonly Child[], used: (pid: number) => number): number {
  return processes.reduce((total, { pid }) => total + used(pid), 0);
}

/** The count stops growing when the client's last requests have ended. */
async function settled(stored: () => Promise<number>): Promise<number> {
  const deadline = performance.now() + settleMsMax;
  for (let last = await stored(); ; ) {
    await delay(100);
    const now = await stored();
    if (now === last || performance.now() > deadline) return now;
    last = now;
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + startMsMax;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > deadline) throw new Error("a server did not start in time");
    await delay(50);
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
