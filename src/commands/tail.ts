// The command `tail` prints new records of the streams. It does not change the streams. After a
// lost connection or a replaced stream, it resumes at its last position.

import { once } from "node:events";
import { DeliverPolicy, type JetStreamClient, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { objectIn } from "../platform/base/json.ts";
import type { Lane } from "../platform/base/lane.ts";
import { pauseUntilAborted } from "../platform/base/retry.ts";
import { isOfManyProjects } from "../platform/nats/names.ts";
import { originalOf } from "../platform/nats/rewritten.ts";
import type { Config } from "../platform/settings/config.ts";
import { findStreams, type StreamName } from "../readers/stream/stored-stream.ts";
import { type CommandContext, CommandError } from "./context.ts";
import { findNats, openNats, refusalOf } from "./nats.ts";
import { mustBeKnown, mustBeProjectId } from "./registered-project.ts";
import { subjectsOf } from "./stream-messages.ts";
import { beginningOf, forTerminal } from "./terminal.ts";

export interface TailOptions {
  readonly project: string | undefined;
  readonly lanes: readonly Lane[];
  readonly fromStart: boolean;
  readonly events?: readonly string[];
  readonly distinctIds?: readonly string[];
  /** Output format. `json` (default) prints stored records, `text` a short line per event. */
  readonly format?: TailFormat;
}

export const tailFormats = ["text", "json"] as const;
export type TailFormat = (typeof tailFormats)[number];

interface Tail {
  readonly js: JetStreamClient;
  readonly context: CommandContext;
  readonly options: TailOptions;
  readonly prefix: string;
  readonly say: (line: string) => void;
  /** Position of the last printed message of each stream. It is kept after a reconnect. */
  readonly positions: Map<string, Position>;
}

interface Position {
  readonly created: string;
  sequence: number;
}

/** Maximum number of frames to request ahead. A frame may exceed half a MiB. */
const framesAhead = 16;
const pollMs = 500;
const retryMs = 1_000;
/** Interval of pings and heartbeats in ms. If two are missing, the connection counts as lost. */
const pingMs = 5_000;

/**
 * Prints events until `context.stop` aborts. Rejects if NATS is unreachable at the start, or if
 * NATS refuses to read the first stream. Afterwards, it retries forever.
 */
export async function tail(
  config: Config,
  options: TailOptions,
  context: CommandContext,
): Promise<void> {
  const { stop, stderr } = context;
  const { project } = options;
  if (project !== undefined) mustBeProjectId(project);
  let lastLine = "";
  function say(line: string): void {
    if (line !== lastLine) stderr.write(`tail: ${forTerminal(line)}\n`);
    lastLine = line;
  }
  let access = findNats(config, context.host);
  const open = async () => await openNats(access, { pingInterval: pingMs, reconnect: false });
  const positions = new Map<string, Position>();
  let connection: NatsConnection | undefined = await open();
  if (project !== undefined) await requireProject(connection, config, project);
  while (!stop.aborted) {
    try {
      if (connection === undefined) {
        access = findNats(config, context.host);
        connection = await open();
      }
      const ended = connection.closed().then((error) => {
        throw new Error(
          error instanceof Error ? error.message : "the server closed the connection",
        );
      });
      ended.catch(() => {});
      const { subjectPrefix: prefix } = config;
      const js = jetstream(connection);
      await Promise.race([followAll({ js, context, options, prefix, say, positions }), ended]);
    } catch (error) {
      const isFollowing = positions.size > 0;
      const isOpen = connection?.isClosed() === false;
      const refusal = isOpen && !isFollowing && refusalOf(error, access, connection!);
      if (refusal) throw refusal;
      if (!stop.aborted) say(`${(error as Error).message}; retrying`);
    }
    await connection?.close().catch(() => {});
    connection = undefined;
    if (!stop.aborted) await pauseUntilAborted(retryMs, stop);
  }
}

/** Rejects an unknown project, unless the user has no permission to read the registry. */
async function requireProject(
  connection: NatsConnection,
  config: Config,
  project: string,
): Promise<void> {
  try {
    await mustBeKnown(connection, config, { command: "tail", project });
  } catch (error) {
    if (!(error instanceof CommandError)) return;
    await connection.close();
    throw error;
  }
}

async function followAll(tailing: Tail): Promise<void> {
  const { context, say } = tailing;
  const streams = await streamsOf(tailing);
  if (streams.length === 0) return;
  // The positions are read before the line "following …" is printed, because all events that are
  // stored after this line must be printed.
  const starts = await Promise.all(streams.map(({ stream }) => positionOf(tailing, stream)));
  say(`following ${streams.map(({ stream }) => stream).join(", ")}; Ctrl-C ends it`);
  await Promise.all(streams.map((name, at) => follow(tailing, name, starts[at]!)));
  if (!context.stop.aborted) throw new Error("the streams stopped responding");
}

async function streamsOf({ js, context, options, prefix, say }: Tail): Promise<StreamName[]> {
  const manager = await js.jetstreamManager();
  while (!context.stop.aborted) {
    const found = await findStreams(manager, prefix);
    const streams = found.filter(({ lane }) => options.lanes.includes(lane));
    if (streams.length > 0) return streams;
    say("no streams yet; waiting for a gateway to create them");
    await pauseUntilAborted(pollMs, context.stop);
  }
  return [];
}

async function follow(tailing: Tail, name: StreamName, position: Position): Promise<void> {
  const { js, context, options, prefix, say } = tailing;
  const { stdout, stop } = context;
  const consumer = await js.consumers.get(name.stream, {
    filter_subjects: subjectsOf(name, { prefix, project: options.project }),
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: position.sequence + 1,
  });
  const messages = await consumer.consume({ max_messages: framesAhead, idle_heartbeat: pingMs });
  const end = () => messages.stop();
  stop.addEventListener("abort", end, { once: true });
  if (stop.aborted) end();
  void (async () => {
    for await (const { type } of messages.status()) if (type === "heartbeats_missed") end();
  })();
  try {
    for await (const message of messages) {
      if (stop.aborted) break;
      position.sequence = message.seq;
      if (!options.fromStart && originalOf(message.headers) !== undefined) continue;
      const lines = linesOf(message, options, say);
      if (lines !== "" && !stdout.write(forTerminal(lines)))
        await once(stdout, "drain", { signal: stop }).catch(() => {});
    }
  } finally {
    stop.removeEventListener("abort", end);
  }
}

/**
 * Returns the position from which messages are printed. If messages of the stream were already
 * printed, this is the position of the last one. If the stream was replaced since, it is the
 * beginning of the stream. Otherwise, it is the end of the stream, or the beginning if `fromStart`
 * is set.
 */
async function positionOf(
  { js, options, positions, say }: Tail,
  stream: string,
): Promise<Position> {
  const manager = await js.jetstreamManager();
  const { created, state } = await manager.streams.info(stream);
  const known = positions.get(stream);
  if (known?.created === created && known.sequence <= state.last_seq) return known;
  if (known !== undefined) {
    say(
      `stream ${stream} was replaced or has lost messages: showing its events from the beginning`,
    );
  }
  const position = {
    created,
    sequence: known !== undefined || options.fromStart ? 0 : state.last_seq,
  };
  positions.set(stream, position);
  return position;
}

function linesOf(message: JsMsg, options: TailOptions, say: Tail["say"]): string {
  const { project, events = [], distinctIds = [], format = "json" } = options;
  const text = message.string();
  const mayHoldOthers = project !== undefined && isOfManyProjects(message.subject);
  if (!mayHoldOthers && events.length === 0 && distinctIds.length === 0 && format === "json")
    return text;
  const shown: string[] = [];
  let unreadable = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const record = recordIn(line);
    if (record === undefined) {
      unreadable++;
      continue;
    }
    if (mayHoldOthers && record.project_id !== project) continue;
    if (events.length > 0 && !events.includes(record.event)) continue;
    if (distinctIds.length > 0 && !distinctIds.includes(record.distinct_id)) continue;
    shown.push(`${format === "json" ? line : textOf(record)}\n`);
  }
  if (unreadable > 0)
    say(
      `skipped ${unreadable} lines of message ${message.seq} of ${message.info.stream} that are not events`,
    );
  return shown.join("");
}

function recordIn(line: string): StoredRecord | undefined {
  const record = objectIn(line);
  return recordTexts.every((name) => typeof record?.[name] === "string")
    ? (record as StoredRecord | undefined)
    : undefined;
}

const recordTexts = ["project_id", "event", "distinct_id", "timestamp"] as const;

type StoredRecord = Readonly<Record<(typeof recordTexts)[number], string>> & {
  readonly properties?: unknown;
};

const nameCharactersMax = 60;
const propertiesCharactersMax = 200;

function textOf(record: StoredRecord): string {
  const time = record.timestamp.replace("T", " ");
  const names = [record.project_id, record.event, record.distinct_id].map((name) =>
    cut(name.replaceAll(/[\t\n]/g, " "), nameCharactersMax),
  );
  const properties = JSON.stringify(record.properties ?? {});
  return [time, ...names, cut(properties, propertiesCharactersMax)].join("  ");
}

function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  return `${beginningOf(text, charactersMax)}… (${text.length} characters)`;
}
