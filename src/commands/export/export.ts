// The command `penstock export` writes the stored events of one project, up to the last message at
// the time of its start. It does not change the streams.

import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdCompress } from "node:zlib";
import type { NatsConnection } from "@nats-io/nats-core";
import { instantMsOf } from "../../platform/base/day.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Config } from "../../platform/settings/config.ts";
import { findStreams, storedStream } from "../../readers/stream/stored-stream.ts";
import { storedMsMax } from "../../records/timestamp.ts";
import { type CommandContext, CommandError, usageExitCode } from "../context.ts";
import { managerFor, withNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId } from "../registered-project.ts";
import type { FoundStream } from "../stream-messages.ts";
import { counted } from "../terminal.ts";
import { type Choice, ChosenLines } from "./chosen-lines.ts";
import { giveName, mustBeFree, othersParts } from "./out-file.ts";
import type { ParquetExport } from "./parquet-export.ts";
import { wholeMessages } from "./whole-messages.ts";

export const compressions = ["gzip", "zstd"] as const;
export const formats = ["ndjson", "parquet"] as const;

export interface ExportOptions {
  readonly lanes: readonly Lane[];
  /**
   * The range of receive times: `from` is the first time and `to` is the exclusive end. Both may be
   * a day, a time or `now`.
   */
  readonly from?: string;
  readonly to?: string;
  readonly out?: string;
  readonly force?: boolean;
  readonly compress?: (typeof compressions)[number];
  readonly format?: (typeof formats)[number];
}

interface Counts {
  events: number;
  bytes: number;
  messages: number;
  unreadable: number;
}

interface Export {
  readonly connection: NatsConnection;
  readonly prefix: string;
  readonly choice: Choice;
  readonly chooser: ParquetExport | ChosenLines;
  readonly counts: Counts;
  readonly stop: AbortSignal;
  readonly say: (line: string) => void;
}

const progressMs = 10_000;
/**
 * Maximum difference between the clocks of the gateway and of NATS in ms. The end of the range has
 * no such limit, because an event may be stored long after it was received. For example, a leaf
 * node stores it during an outage.
 */
export const clocksApartMsMax = 600_000;
const yearOneMs = Date.parse("0001-01-01T00:00:00Z");
const pieceBytes = 65_536;

export async function exportEvents(
  config: Config,
  { project, ...options }: ExportOptions & { readonly project: string },
  context: CommandContext,
): Promise<void> {
  const nowMs = Date.now();
  const choice = choiceOf(project, options, nowMs);
  const parquet = options.format === "parquet" ? await parquetExport(choice, options) : undefined;
  const chooser = parquet ?? new ChosenLines(choice);
  const say = (line: string) => context.stderr.write(`export: ${line}\n`);
  if (options.out !== undefined) {
    mustBeFree(options.out, options.force === true);
    for (const part of othersParts(options.out))
      say(
        `${part} belongs to another export to the same file: if no other export is running, remove it`,
      );
  }
  const counts = { events: 0, bytes: 0, messages: 0, unreadable: 0 };
  const sinceMonotonicMs = performance.now();
  const progress = setInterval(() => say(progressOf(counts, sinceMonotonicMs)), progressMs);
  try {
    await withNats({ config, context }, async (connection) => {
      await mustBeKnown(connection, config, { command: "export", project });
      const { subjectPrefix: prefix } = config;
      const { lanes } = options;
      const streams = await streamsOf(connection, { prefix, lanes, command: "export" });
      const { stop } = context;
      const own: Export = { connection, prefix, choice, chooser, counts, stop, say };
      await write(Readable.from(pieces(own, streams)), { ...options, parquet }, context);
    });
  } finally {
    clearInterval(progress);
  }
  if (counts.unreadable > 0) say(`lines skipped because they are not events: ${counts.unreadable}`);
  say(`done: ${progressOf(counts, sinceMonotonicMs)}`);
}

async function parquetExport(
  choice: Choice,
  { out, compress }: ExportOptions,
): Promise<ParquetExport> {
  const wrong = (what: string) => new CommandError(`export: ${what}`, usageExitCode);
  if (out === undefined)
    throw wrong("--format parquet needs --out, because the output is one file");
  if (compress !== undefined)
    throw wrong(
      "--format parquet cannot be combined with --compress: its columns are already compressed",
    );
  const { duckdb } = await import("../../readers/sinks/parquet/parquet-maker.ts");
  try {
    duckdb();
  } catch (error) {
    throw new CommandError(`export: ${(error as Error).message}`);
  }
  const { ParquetExport: Exporter } = await import("./parquet-export.ts");
  return new Exporter(choice);
}

function choiceOf(
  project: string,
  { from, to }: Pick<ExportOptions, "from" | "to">,
  nowMs: number,
): Choice {
  const wrong = (what: string) => new CommandError(`export: ${what}`, usageExitCode);
  mustBeProjectId(project);
  const time = (name: string, text: string | undefined): string | undefined => {
    if (text === undefined) return undefined;
    const ms = text === "now" ? nowMs : instantMsOf(text);
    if (Number.isNaN(ms))
      throw wrong(
        `${name} must be a day or a time that exists, such as 2026-01-31 or 2026-01-31T10:00:00Z (got "${text}")`,
      );
    if (ms < yearOneMs || ms > storedMsMax)
      throw wrong(`${name} must be in the years 1 to 9999 (got "${text}")`);
    return new Date(ms).toISOString();
  };
  const choice = { project, from: time("--from", from), to: time("--to", to) };
  if (choice.from !== undefined && choice.to !== undefined && choice.from >= choice.to)
    throw wrong("--from must be before --to");
  return choice;
}

interface WantedStreams {
  readonly prefix: string;
  readonly lanes: readonly Lane[];
  /** The command, with which the error begins. */
  readonly command: string;
}

/** Returns the streams of the lanes. Throws a CommandError if there is none. */
export async function streamsOf(
  connection: NatsConnection,
  { prefix, lanes, command }: WantedStreams,
): Promise<FoundStream[]> {
  const manager = await managerFor(connection);
  const names = await findStreams(manager, prefix);
  const found: FoundStream[] = [];
  for (const name of names.filter(({ lane }) => lanes.includes(lane))) {
    const state = await storedStream(manager, name.stream).state();
    if (state !== undefined) found.push({ name, state });
  }
  if (found.length === 0) throw new CommandError(`${command}: there are no streams yet`);
  return found;
}

async function* pieces(own: Export, streams: readonly FoundStream[]): AsyncGenerator<Buffer> {
  const { connection, prefix, choice, chooser, counts, stop, say } = own;
  const { project, from } = choice;
  let piece: Buffer[] = [];
  let held = 0;
  for (const one of streams) {
    const { firstSequence, beginsAt } = one.state;
    const { stream } = one.name;
    if (firstSequence > beginsAt)
      say(`${stream} begins with message ${firstSequence}: earlier messages have expired`);
    const lost = (first: number, last: number) =>
      say(
        `messages ${first} to ${last} left ${stream} during the export: unread messages are missing from the output`,
      );
    // The time is at least 0, because the server cannot compare times long before 1970.
    const storedFromMs =
      from === undefined ? undefined : Math.max(0, Date.parse(from) - clocksApartMsMax);
    const missed = (messages: number) =>
      say(
        `${messages} replacements of erased messages have left ${stream}: their events, of this project or others, are missing`,
      );
    const options = { prefix, project, storedFromMs, stop, lost, missed };
    for await (const message of wholeMessages(connection, one, options)) {
      const { bytes, events, unreadable } = chooser.choose(message, one.name);
      counts.messages++;
      counts.events += events;
      counts.unreadable += unreadable;
      counts.bytes += bytes.length;
      piece.push(bytes);
      held += bytes.length;
      if (held < pieceBytes) continue;
      yield Buffer.concat(piece);
      piece = [];
      held = 0;
    }
    stop.throwIfAborted();
  }
  yield Buffer.concat(piece);
}

interface Written extends Pick<ExportOptions, "out" | "force" | "compress"> {
  readonly parquet: ParquetExport | undefined;
}

async function write(
  lines: Readable,
  { out, force: isForced = false, compress, parquet }: Written,
  { stdout, stop }: CommandContext,
): Promise<void> {
  const next = out === undefined ? undefined : `${out}.${randomUUID()}.part`;
  try {
    if (parquet !== undefined && out !== undefined) {
      await parquet.write(lines, out, isForced);
      return;
    }
    const target: Writable = next === undefined ? stdout : createWriteStream(next);
    const compressor = compress === "gzip" ? createGzip : createZstdCompress;
    const through = compress === undefined ? [] : [compressor()];
    await pipeline([lines, ...through, target], { signal: stop, end: next !== undefined });
    if (next !== undefined && out !== undefined) await giveName(next, out, isForced);
  } catch (error) {
    if (next !== undefined) await rm(next, { force: true });
    if (stop.aborted) throw new CommandError("export: interrupted: the output is incomplete");
    if (error instanceof CommandError) throw error;
    throw new CommandError(`export: ${(error as Error).message}`);
  }
}

function progressOf({ events, bytes, messages }: Counts, sinceMonotonicMs: number): string {
  const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
  const perSecond = Math.round(events / Math.max(seconds, 0.001));
  return `${counted(events, "event")}, ${counted(bytes, "byte")} of ${counted(messages, "message")}, in ${seconds.toFixed(1)} s: ${perSecond} events/s`;
}
