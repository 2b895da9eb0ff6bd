import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { EffectsReader, EffectsStore } from "../../src/readers/effects/store/port.ts";
import {
  EffectsWriter,
  type EffectsWriterOptions,
} from "../../src/readers/effects/writer/effects-writer.ts";

const pollMs = 30;

export async function dumpOf(reader: EffectsReader): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of reader.dump()) lines.push(line);
  return lines;
}

export function apart(one: readonly string[], other: readonly string[]): string[] {
  const [ours, theirs] = [new Set(one), new Set(other)];
  const more = one.filter((line) => !theirs.has(line)).map((line) => `- ${line}`);
  const less = other.filter((line) => !ours.has(line)).map((line) => `+ ${line}`);
  const sizes = one.length === other.length ? [] : [`${one.length} and ${other.length} lines`];
  return [...sizes, ...more.slice(0, 5), ...less.slice(0, 5)];
}

async function notApplied(
  reader: EffectsReader,
  connection: NatsConnection,
): Promise<readonly (readonly [string, number])[]> {
  const manager = await jetstreamManager(connection, { timeout: 1_000 });
  const ends = new Map<string, number>();
  for await (const { config, state } of manager.streams.list())
    if (state.last_seq > 0 && !config.name.startsWith("KV_")) ends.set(config.name, state.last_seq);
  for (const { stream, sequence } of await reader.applied())
    if (ends.get(stream) === sequence) ends.delete(stream);
  return [...ends];
}

export async function untilApplied(
  reader: EffectsReader,
  connection: NatsConnection,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let found = "";
  while (performance.now() < deadline) {
    try {
      const left = await notApplied(reader, connection);
      if (left.length === 0) return;
      found = JSON.stringify(left);
    } catch (error) {
      found = (error as Error).message;
    }
    await delay(pollMs);
  }
  throw new Error(`apply all that the streams hold: not within ${timeoutMs} ms: ${found}`);
}

type WriterSettings = Omit<EffectsWriterOptions, "prefix" | "log" | "store">;

export async function undisturbedDump(
  store: EffectsStore,
  settings: WriterSettings,
  timeoutMs?: number,
): Promise<string[]> {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const writer = new EffectsWriter({ prefix: "penstock", log, store, ...settings });
  writer.start();
  const ended = writer.ended();
  ended.catch(() => {});
  try {
    await Promise.race([
      untilApplied(store.reader, settings.connection, timeoutMs),
      ended.then(() => Promise.reject(new Error("the writer has ended"))),
    ]);
  } finally {
    await writer.close();
  }
  return await dumpOf(store.reader);
}
