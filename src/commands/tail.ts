// `tail`: prints the stored records as they are, one a line, as they come into the streams. It only reads: ordered
// consumers leave nothing behind on the server.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { DeliverPolicy, type JetStreamClient, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { Config } from "../config.ts";
import { manyProjects } from "../publish/subject.ts";
import type { Lane } from "../types.ts";
import type { CommandContext } from "./context.ts";
import { findNats, openNats } from "./nats.ts";

export interface TailOptions {
  /** All projects when undefined. */
  readonly project: string | undefined;
  readonly lanes: readonly Lane[];
  readonly fromStart: boolean;
}

interface Tail {
  readonly js: JetStreamClient;
  readonly context: CommandContext;
  readonly options: TailOptions;
}

interface Source {
  readonly stream: string;
  readonly subject: string;
}

/** Frames fetched ahead of a slow reader; a frame may have half a MiB and more. */
const framesAhead = 16;
const lookAgainMs = 500;

/** Runs until `context.stop`. */
export async function tail(config: Config, options: TailOptions, context: CommandContext): Promise<void> {
  const connection = await openNats(findNats(config, context.host));
  try {
    const js = jetstream(connection);
    const subjects = options.lanes.flatMap((lane) => subjectsOf(config.subjectPrefix, lane, options.project));
    const sources = await streamsOf(js, subjects, context);
    if (sources.length === 0) return;
    const streams = [...new Set(sources.map(({ stream }) => stream))].join(", ");
    context.stderr.write(`tail: following ${streams}; Ctrl-C ends it\n`);
    await Promise.all(sources.map((source) => follow({ js, context, options }, source)));
  } finally {
    await connection.close();
  }
}

/** A project's own messages, and those it may share. Two consumers a stream: one with both subjects needs nats-server 2.10. */
function subjectsOf(prefix: string, lane: Lane, project: string | undefined): string[] {
  const tokens = project === undefined ? ["*"] : [project, ...(lane === "live" ? [manyProjects] : [])];
  return tokens.map((token) => `${prefix}.${lane}.*.${token}`);
}

/** Waits until the gateway has made the streams; empty when told to stop before. */
async function streamsOf(js: JetStreamClient, subjects: readonly string[], context: CommandContext): Promise<Source[]> {
  const manager = await js.jetstreamManager();
  for (let said = false; !context.stop.aborted; said = true) {
    const sources: Source[] = [];
    for (const subject of subjects) {
      for await (const stream of manager.streams.names(subject)) sources.push({ stream, subject });
    }
    if (sources.length > 0) return sources;
    if (!said) context.stderr.write("tail: there are no streams yet; waiting for a gateway to make them\n");
    await delay(lookAgainMs, undefined, { signal: context.stop }).catch(() => {});
  }
  return [];
}

async function follow({ js, context, options }: Tail, { stream, subject }: Source): Promise<void> {
  const { stdout, stop } = context;
  const consumer = await js.consumers.get(stream, {
    filter_subjects: subject,
    deliver_policy: options.fromStart ? DeliverPolicy.All : DeliverPolicy.New,
  });
  const messages = await consumer.consume({ max_messages: framesAhead });
  const end = () => messages.stop();
  stop.addEventListener("abort", end, { once: true });
  if (stop.aborted) end();
  for await (const message of messages) {
    if (stop.aborted) break;
    const records = message.subject.endsWith(`.${manyProjects}`) ? recordsOf(message, options.project) : message.data;
    if (!stdout.write(records)) await once(stdout, "drain", { signal: stop }).catch(() => {});
  }
}

/** The lines of one project, or of all. */
function recordsOf(message: JsMsg, project: string | undefined): Uint8Array | string {
  if (project === undefined) return message.data;
  const lines = message.string().split("\n").slice(0, -1);
  const own = lines.filter((line) => (JSON.parse(line) as { project_id?: unknown }).project_id === project);
  return own.map((line) => `${line}\n`).join("");
}
