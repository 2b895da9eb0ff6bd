// The real gateway in this process, on random ports, with a nats-server of the test kit.

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type ConsumerMessages, type JsMsg, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { startGateway } from "../../src/app/gateway.ts";
import type { ProjectQuota } from "../../src/gateway/projects/project.ts";
import { addProject, setQuota } from "../../src/gateway/projects/registry/commands.ts";
import type { Lane } from "../../src/platform/base/lane.ts";
import { createLog, type ProcessLog } from "../../src/platform/base/log.ts";
import { ownSignature } from "../../src/platform/base/port-access.ts";
import type { Config } from "../../src/platform/settings/config.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from "./nats-server.ts";

export interface StoredFrame {
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly events: StoredEvent[];
}

export type StoredEvent = Record<string, unknown> & {
  readonly properties: Record<string, unknown>;
};

export interface TestProject {
  readonly id: string;
  readonly key: string;
}

export interface TestGateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly port: number;
  readonly nats: TestNatsServer;
  readonly config: Config;
  project(): Promise<TestProject>;
  projects(count: number): Promise<TestProject[]>;
  limit(project: TestProject, quota: ProjectQuota | undefined): Promise<void>;
  frames(project: TestProject, lane?: Lane): Promise<StoredFrame[]>;
  events(project: TestProject, lane?: Lane): Promise<StoredEvent[]>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  metrics(): Promise<string>;
  close(): Promise<void>;
  stop(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

export interface TestGatewayOptions {
  readonly nats?: TestNatsServerOptions;
  readonly server?: TestNatsServer;
  readonly env?: Record<string, string>;
  readonly log?: ProcessLog;
}

/** With a much shorter interval, idle gateways would take much of the CPU time of all tests. */
const registryPollMs = 50;

export async function startTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const nats = options.server ?? (await startNatsServer(options.nats ?? {}));
  const config = testConfig(nats, options.env ?? {});
  const { log = createLog("error") } = options;
  const gateway = await startGateway(config, { log, registryPollMs });
  const credentials = nats.token === undefined ? {} : { token: nats.token };
  const url = `http://127.0.0.1:${gateway.port}`;
  const adminUrl = `http://127.0.0.1:${gateway.adminPort}`;
  let closed = false;

  async function project(): Promise<TestProject> {
    return (await projects(1))[0]!;
  }

  async function projects(count: number): Promise<TestProject[]> {
    const added = Array.from({ length: count }, () => {
      const id = `p${randomBytes(6).toString("hex")}`;
      return { id, key: `phc_${id}` };
    });
    const known = async (): Promise<number> =>
      Number(/^penstock_projects(?:\{[^}]*\})? (\d+)$/m.exec(await metrics())?.[1]);
    const knownBefore = await known();
    await withClient(async (connection) => {
      for (const { id, key } of added)
        await addProject(connection, { prefix: config.subjectPrefix, id, key, replicas: 1 });
    });
    // Usually, the gateway has read the registry after this delay. Polling from the start would waste
    // CPU, and its requests would be counted.
    await delay(registryPollMs + 10);
    await until(async () => (await known()) >= knownBefore + count);
    const { key } = added.at(-1)!;
    await until(async () => (await post("/batch/", { api_key: key, batch: [] })).status === 200);
    return added;
  }

  async function limit({ id }: TestProject, quota: ProjectQuota | undefined): Promise<void> {
    await withClient((connection) =>
      setQuota(connection, { prefix: config.subjectPrefix, id, quota, replicas: 1 }),
    );
  }

  /** Each call opens a connection, because an older one may still be reconnecting. */
  async function withClient<T>(action: (connection: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await connect({ servers: nats.url, ...credentials });
    try {
      return await action(connection);
    } finally {
      await connection.close();
    }
  }

  async function post(
    path: string,
    body: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const sent =
      typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await fetch(url + path, { method: "POST", body: sent, headers });
    return {
      status: response.status,
      headers: response.headers,
      json: (await response.json()) as Answer["json"],
    };
  }

  async function frames(of: TestProject, lane: Lane = "live"): Promise<StoredFrame[]> {
    return withClient((connection) =>
      readFrames(connection, `${config.subjectPrefix}.${lane}.*.${of.id}`),
    );
  }

  async function events(of: TestProject, lane: Lane = "live"): Promise<StoredEvent[]> {
    return (await frames(of, lane)).flatMap((frame) => frame.events);
  }

  async function close(): Promise<void> {
    if (closed) return;
    closed = true;
    await gateway.close();
  }

  async function stop(): Promise<void> {
    await close();
    if (options.server === undefined) await nats.remove();
  }

  async function metrics(): Promise<string> {
    const target = new URL(`${adminUrl}/metrics`);
    return (await fetch(target, { headers: ownSignature(config)(target) })).text();
  }

  return {
    url,
    adminUrl,
    port: gateway.port,
    nats,
    config,
    project,
    projects,
    limit,
    frames,
    events,
    post,
    metrics,
    close,
    stop,
  };
}

function testConfig(nats: TestNatsServer, env: Record<string, string>): Config {
  const result = readConfig(
    {
      PENSTOCK_HOST: "127.0.0.1",
      PENSTOCK_PORT: "0",
      PENSTOCK_ADMIN_PORT: "0",
      PENSTOCK_NATS_URL: nats.url,
      PENSTOCK_STREAM_BYTES_MAX: String(256 * 1_048_576),
      ...(nats.token === undefined ? {} : { PENSTOCK_NATS_TOKEN: nats.token }),
      ...env,
    },
    {},
  );
  if (!result.ok) throw new Error(`read test settings: ${result.faults.join("; ")}`);
  return result.config;
}

const reachedMsMax = 30_000;
const reachAgainMs = 100;

/** In a cluster, waits until the node of the connection reaches the stream and its consumer. */
export async function readFrames(
  connection: NatsConnection,
  subject: string,
): Promise<StoredFrame[]> {
  const deadline = performance.now() + reachedMsMax;
  for (;;) {
    try {
      return await framesOf(connection, subject);
    } catch (error) {
      const isNotReached = /no responders|jetstream is not enabled/.test(String(error));
      if (!isNotReached || performance.now() > deadline) throw error;
      await delay(reachAgainMs);
    }
  }
}

async function framesOf(connection: NatsConnection, subject: string): Promise<StoredFrame[]> {
  const manager = await jetstreamManager(connection);
  const stream = await manager.streams.find(subject.replace(".*.", ".0."));
  const { state } = await manager.streams.info(stream, { subjects_filter: subject });
  const expected = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  if (expected === 0) return [];
  const consumer = await jetstream(connection).consumers.get(stream, { filter_subjects: subject });
  const messages: ConsumerMessages = await consumer.fetch({
    max_messages: expected,
    expires: 10_000,
  });
  const frames: StoredFrame[] = [];
  for await (const message of messages) frames.push(storedFrame(message));
  await consumer.delete();
  return frames;
}

function storedFrame(message: JsMsg): StoredFrame {
  const text = Buffer.from(message.data).toString("utf8");
  const headers = Object.fromEntries(
    [...(message.headers ?? [])].map(([name, values]) => [name, values[0] ?? ""]),
  );
  const lines = text.split("\n");
  if (lines.pop() !== "")
    throw new Error(`read frame: does not end in a line feed: ${text.slice(-80)}`);
  return {
    subject: message.subject,
    headers,
    text,
    events: lines.map((line) => JSON.parse(line) as StoredEvent),
  };
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`wait: the condition did not hold within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
