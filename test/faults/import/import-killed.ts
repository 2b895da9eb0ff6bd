// The import is killed twice while it runs. After the import, every line of the file is in the
// stream once, in the order of the file.

import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Child, startChild } from "../../../bench/harness/child.ts";
import { addProject } from "../../../src/gateway/projects/registry/commands.ts";
import type { StoredEvent } from "../../kit/gateway.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { startGatewayProcess } from "../gateway-process.ts";
import { type Random, randomFrom } from "../random.ts";
import type { GatewayProcess } from "../scenario.ts";

interface ImportKilledOptions {
  readonly form: "short" | "full";
  readonly binary: string;
  readonly natsVersion: string;
  readonly seed: number;
}

export interface ImportResult {
  readonly scenario: string;
  readonly natsVersion: string;
  readonly seconds: number;
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}

export const importKilled = {
  name: "import-killed",
  title: "the import of a file is killed twice, and started again",
} as const;

const main = path.resolve(import.meta.dirname, "../../../src/main.ts");
const events = { short: 20_000, full: 1_000_000 };
const batchBytes = { short: 400_000, full: 4_194_304 };
const kills = 2;
const project = { id: "history", key: "phc_history" };
const stream = "PENSTOCK_HISTORICAL_0";
const messagesAhead = 16;
const storeBytesMax = 4 * 2 ** 30;
const importMsMax = 600_000;
const lookAgainMs = 1;
const killedWithinMs = 40;

export async function runImportKilled(options: ImportKilledOptions): Promise<ImportResult> {
  const begunMonotonicMs = performance.now();
  const { form, binary, natsVersion, seed } = options;
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-faults-import-"));
  const nats = await startNatsServer({ binary, maxFileStore: storeBytesMax });
  const notes: string[] = [];
  let gateway: GatewayProcess | undefined;
  let connection: NatsConnection | undefined;
  try {
    gateway = await startGatewayProcess({
      command: "serve",
      env: { PENSTOCK_NATS_URL: nats.url, PENSTOCK_STREAM_BYTES_MAX: String(storeBytesMax / 4) },
    });
    const { url } = gateway;
    connection = await connect({ servers: nats.url });
    await addProject(connection, { prefix: "penstock", replicas: 1, ...project });
    const file = path.join(folder, "events.ndjson");
    await pipeline(linesOf(events[form]), createWriteStream(file));
    const start = (): Child =>
      startChild({
        program: process.execPath,
        args: [
          "--disable-warning=ExperimentalWarning",
          main,
          "import",
          "--url",
          url,
          "--key",
          project.key,
          "--batch-bytes",
          String(batchBytes[form]),
          file,
        ],
      });
    const random = randomFrom(seed);
    for (let kill = 1; kill <= kills; kill++) {
      const lines = await killed(start(), {
        file,
        from: ((kill - 0.5) * events[form]) / (kills + 1),
        random,
      });
      notes.push(`killed with ${lines} lines noted as done`);
    }
    await start().finished(importMsMax);
    const faults = await faultsOf(connection, events[form]);
    const seconds = (performance.now() - begunMonotonicMs) / 1_000;
    return { scenario: importKilled.name, natsVersion, seconds, faults, notes };
  } finally {
    await connection?.close();
    await gateway?.kill("SIGKILL");
    await nats.remove();
    rmSync(folder, { recursive: true });
  }
}

function* linesOf(count: number): Generator<string, void, void> {
  for (let from = 0; from < count; from += 1_000) {
    let text = "";
    for (let number = from; number < Math.min(count, from + 1_000); number++) {
      const n = Math.floor(number / 2);
      const timestamp = new Date(1_600_000_000_000 + n * 1_000).toISOString();
      const properties = { n, page: `https://example.com/${n}`, text: "x".repeat(150) };
      text += `${JSON.stringify({ event: "seen", distinct_id: `user-${n % 500}`, timestamp, properties })}\n`;
    }
    yield text;
  }
}

interface KillOptions {
  readonly file: string;
  readonly from: number;
  readonly random: Random;
}

async function killed(child: Child, { file, from, random }: KillOptions): Promise<number> {
  const noted = (): number => {
    const stateFile = `${file}.penstock-import`;
    if (!existsSync(stateFile)) return 0;
    return (JSON.parse(readFileSync(stateFile, "utf8")) as { lines: number }).lines;
  };
  const deadline = performance.now() + importMsMax;
  while (noted() < from) {
    if (child.process.exitCode !== null || performance.now() > deadline)
      throw new Error(`wait for the import to be under way: ${child.said()}`);
    await delay(lookAgainMs);
  }
  await delay(random() * killedWithinMs);
  if (child.process.exitCode !== null)
    throw new Error(`kill the import: it has ended already: ${child.said()}`);
  await child.end("SIGKILL");
  return noted();
}

async function faultsOf(connection: NatsConnection, count: number): Promise<string[]> {
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info(stream);
  const uuids = new Set<unknown>();
  let stored = 0;
  let outOfOrder = 0;
  if (state.messages > 0) {
    const consumer = await jetstream(connection).consumers.get(stream);
    for await (const message of await consumer.consume({ max_messages: messagesAhead })) {
      for (const line of message.string().split("\n").slice(0, -1)) {
        const { uuid, properties } = JSON.parse(line) as StoredEvent;
        uuids.add(uuid);
        if (properties["n"] !== Math.floor(stored / 2)) outOfOrder++;
        stored++;
      }
      if (message.seq >= state.last_seq) break;
    }
  }
  const faults: string[] = [];
  if (stored !== count) faults.push(`${stored} events are stored, of ${count} lines`);
  if (uuids.size !== stored) faults.push(`${stored - uuids.size} events have the uuid of another`);
  if (outOfOrder > 0) faults.push(`${outOfOrder} events are not in the order of their lines`);
  return faults;
}
