import { readFileSync } from "node:fs";
import { type AddressInfo, connect as connectTo, createServer } from "node:net";
import path from "node:path";
import { type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished } from "vitest";
import { CommandError } from "../../../src/commands/context.ts";
import { type DoctorOptions, doctor as runDoctor } from "../../../src/commands/doctor/doctor.ts";
import type { Finding } from "../../../src/commands/doctor/finding.ts";
import { ensureStreams } from "../../../src/gateway/streams/ensure.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { commandWorld } from "../../kit/command-context.ts";
import {
  startNatsServer,
  type TestNatsServer,
  type TestNatsServerOptions,
} from "../../kit/nats-server.ts";
import { binary, ended, type penstockWith, silent } from "../../kit/processes.ts";

export interface DoctorRun {
  readonly exitCode: number | NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
  of(check: string): Finding[];
}

const streamBytesMax = 4_194_304;
const standard = {
  PENSTOCK_PORT: "0",
  PENSTOCK_ADMIN_PORT: "0",
  PENSTOCK_EFFECTS_PORT: "0",
  PENSTOCK_STREAM_BYTES_MAX: String(streamBytesMax),
  PENSTOCK_REJECTED_BYTES: "0",
  PENSTOCK_NATS_SERVER: binary.file,
};

/** Unless the variables set them, the ports are free ports and the streams are small. */
export async function doctor(
  variables: Record<string, string> = {},
  options: Partial<DoctorOptions> = {},
): Promise<DoctorRun> {
  const { context, said } = commandWorld({ ...standard, ...variables });
  let exitCode = 0;
  try {
    await runDoctor(
      readConfig(context.env, {}),
      { json: true, strict: false, ...options },
      context,
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    exitCode = error.exitCode;
    said.err += error.message;
  }
  return runFrom(exitCode, said);
}

export async function runOf(child: ReturnType<typeof penstockWith>): Promise<DoctorRun> {
  return runFrom(await ended(child), child.said);
}

function runFrom(
  exitCode: DoctorRun["exitCode"],
  { out, err }: { out: string; err: string },
): DoctorRun {
  const checks = out.startsWith("{") ? (JSON.parse(out) as { checks: Finding[] }).checks : [];
  return { exitCode, out, err, of: (check) => checks.filter((finding) => finding.check === check) };
}

export async function doctorAt(
  { url }: Pick<TestNatsServer, "url">,
  variables: Record<string, string> = {},
  options: Partial<DoctorOptions> = {},
): Promise<DoctorRun> {
  return await doctor({ PENSTOCK_NATS_URL: url, ...variables }, options);
}

export function expectOne(run: DoctorRun, check: string, level: Finding["level"]): Finding {
  const found = run.of(check);
  expect(found, `${check} in ${run.out}${run.err}`).toHaveLength(1);
  expect(found[0]).toMatchObject({ level });
  expect((found[0]?.fix ?? "") === "").toBe(level === "ok");
  return found[0]!;
}

export async function serverWith(options: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  const server = await startNatsServer(options);
  onTestFinished(() => server.remove());
  return server;
}

export function monitorOf({ storeDir, pid }: TestNatsServer): string {
  const ports = readFileSync(path.join(path.dirname(storeDir), `nats-server_${pid}.ports`), "utf8");
  return (JSON.parse(ports) as { monitoring: string[] }).monitoring[0] ?? "";
}

export async function withJetStream<T>(
  { url, token }: Pick<TestNatsServer, "url" | "token">,
  action: (jsm: JetStreamManager) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: url, ...(token === undefined ? {} : { token }) });
  try {
    return await action(await jetstreamManager(connection));
  } finally {
    await connection.close();
  }
}

export const streamSettings = {
  subjectPrefix: "penstock",
  partitions: 1,
  replicas: 1,
  streamBytesMax,
  liveAgeMax: 7 * 86_400_000,
  historicalAgeMax: 30 * 86_400_000,
  frameBytesMax: 524_288,
  atomicBatches: true,
};

export async function makeStreams(
  server: TestNatsServer,
  settings = streamSettings,
): Promise<void> {
  const connection = await connect({
    servers: server.url,
    ...(server.token === undefined ? {} : { token: server.token }),
  });
  try {
    await ensureStreams(connection, settings, silent);
  } finally {
    await connection.close();
  }
}

export async function edit(
  server: TestNatsServer,
  name: string,
  changed: Partial<StreamConfig>,
): Promise<void> {
  await withJetStream(server, (jsm) => jsm.streams.update(name, changed));
}

interface Relay {
  readonly url: string;
  /**
   * Accepts connections but forwards no data. With `afterText`, begins at this text of the server.
   */
  silence(afterText: string): void;
}

/** `change` changes the server's text, and must keep its length. */
export async function relayTo(
  { port }: TestNatsServer,
  change: (text: string) => string,
): Promise<Relay> {
  let lastWords: string | undefined;
  const relay = createServer((client) => {
    const server = connectTo({ host: "127.0.0.1", port });
    let isSilent = false;
    client.pipe(server);
    server.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      if (!isSilent) client.write(Buffer.from(change(text), "latin1"));
      if (lastWords !== undefined && text.includes(lastWords)) isSilent = true;
    });
    for (const socket of [client, server]) socket.on("error", () => {});
    client.once("close", () => server.destroy());
    server.once("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => void relay.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void relay.close());
  return {
    url: `nats://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    silence: (afterText) => {
      lastWords = afterText;
    },
  };
}
