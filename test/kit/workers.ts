import { type ChildProcess, execFileSync } from "node:child_process";
import { Agent, request } from "node:http";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished } from "vitest";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { readFrames } from "./gateway.ts";
import { startNatsServer, type TestNatsServer } from "./nats-server.ts";
import { type penstock, penstockWith } from "./processes.ts";

export const key = "phc_workers";
const project = "shop";

export interface TestWorkers {
  readonly process: ChildProcess;
  readonly port: number;
  readonly adminUrl: string;
  pid(worker: number): number;
  metrics(): Promise<Map<string, number>>;
  readyz(): Promise<[number, Record<string, unknown>]>;
}

export type Started = ReturnType<typeof penstock>;

export async function natsWithProject(): Promise<TestNatsServer> {
  const nats = await startNatsServer({ token: "a-secret-token" });
  onTestFinished(() => nats.remove());
  await withClient(nats, (connection) =>
    addProject(connection, { prefix: "penstock", id: project, key, replicas: 1, name: undefined }),
  );
  return nats;
}

export function serve(nats: TestNatsServer, ...args: string[]): Started {
  return serveWith({}, nats, ...args);
}

export function serveWith(
  variables: Readonly<Record<string, string>>,
  nats: TestNatsServer,
  ...args: string[]
): Started {
  const where = [
    "--nats-url",
    nats.url,
    "--nats-token",
    nats.token ?? "",
    "--host",
    "127.0.0.1",
    "--admin-port",
    "0",
  ];
  const port = args.includes("--port") ? [] : ["--port", "0"];
  return penstockWith(
    variables,
    "serve",
    ...where,
    ...port,
    "--stream-bytes-max",
    "67108864",
    ...args,
  );
}

export async function workersOn(nats: TestNatsServer, ...args: string[]): Promise<TestWorkers> {
  return await asWorkers(serve(nats, ...args));
}

export async function asWorkers(process: Started): Promise<TestWorkers> {
  const logged = () => linesOf(process.said.err);
  const listening = () => logged().findLast((line) => "adminPort" in line);
  await expect.poll(() => listening() ?? process.exitCode, { timeout: 30_000 }).not.toBeNull();
  expect(process.exitCode, process.said.err).toBeNull();
  const [port, adminPort] = [Number(listening()?.["port"]), Number(listening()?.["adminPort"])];
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  return {
    process,
    port,
    adminUrl,
    pid: (worker) =>
      Number(
        logged().findLast(
          (line) => line["worker"] === worker && /accepts connections/.test(line.msg),
        )?.["pid"],
      ),
    metrics: async () => seriesOf(await (await fetch(`${adminUrl}/metrics`)).text()),
    async readyz() {
      const response = await fetch(`${adminUrl}/readyz`);
      return [response.status, (await response.json()) as Record<string, unknown>];
    },
  };
}

function linesOf(text: string): (Record<string, unknown> & { msg: string })[] {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return whole.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

function seriesOf(scrape: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of scrape.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const end = line.lastIndexOf(" ");
    if (series.has(line.slice(0, end))) throw new Error(`Parse a scrape: twice: ${line}`);
    series.set(line.slice(0, end), Number(line.slice(end)));
  }
  return series;
}

export const restartsTotal = "penstock_worker_restarts_total";
export const liveStored = 'penstock_events_total{lane="live",outcome="stored",reason="none"}';

export interface Client {
  readonly acknowledged: string[];
  readonly refused: number[];
  failed: number;
}

export interface Load {
  readonly clients: readonly Client[];
  stop(): Promise<void>;
}

/** Starts clients. Each sends one event after another on its own persistent connection. */
export function startLoad(port: number, clientCount: number): Load {
  let stopped = false;
  const clients = Array.from(
    { length: clientCount },
    () => ({ acknowledged: [], refused: [], failed: 0 }) as Client,
  );
  const loops = clients.map(async (client, number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let count = 0; !stopped; count++) {
      const id = `${number}-${count}`;
      const status = await postOne(port, agent, id).catch(() => 0);
      if (status === 200) client.acknowledged.push(id);
      else if (status > 0) client.refused.push(status);
      else client.failed++;
      // The pause prevents a busy loop if no server responds.
      if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    agent.destroy();
  });
  const stop = async () => {
    stopped = true;
    await Promise.all(loops);
  };
  onTestFinished(stop);
  return { clients, stop };
}

export function postOne(port: number, agent: Agent, distinctId: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, agent, method: "POST", path: "/capture/" },
      (response) => {
        response.on("error", reject).on("end", () => resolve(response.statusCode ?? 0));
        response.resume();
      },
    );
    sent
      .on("error", reject)
      .end(JSON.stringify({ api_key: key, event: "hello", distinct_id: distinctId }));
  });
}

export async function storedIds(nats: TestNatsServer): Promise<Set<string>> {
  const frames = await withClient(nats, (connection) =>
    readFrames(connection, `penstock.live.*.${project}`),
  );
  return new Set(
    frames.flatMap(({ events }) => events.map((event) => String(event["distinct_id"]))),
  );
}

export async function withClient<T>(
  { url, token }: TestNatsServer,
  action: (connection: Awaited<ReturnType<typeof connect>>) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: url, ...(token === undefined ? {} : { token }) });
  try {
    return await action(connection);
  } finally {
    await connection.close();
  }
}

export function titleOf(pid: number): string {
  return execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
}
