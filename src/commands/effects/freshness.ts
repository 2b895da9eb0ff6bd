// Tells how old what a command shows is, where it is not of now: a database answers as well while
// nothing writes to it. On standard error, so that the result stays what it is.

import { greatestOf } from "../../platform/base/extremes.ts";
import type { OpenReader } from "../../readers/effects/store/open.ts";
import type { AppliedStream } from "../../readers/effects/store/port.ts";
import { lagOf, type StreamStatus, streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import { type ConfiguredCommand, note } from "../configured-command.ts";
import { findNats, openNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { shownTime } from "./shown.ts";

/** A process that works is behind for less. */
const lagSecondsMax = 5;

/** Says nothing where a process applies events and keeps up. */
export async function noteAge(command: ConfiguredCommand, reader: OpenReader): Promise<void> {
  const [applied, hasWriter] = await Promise.all([reader.applied(), reader.hasWriter()]);
  const streams = await askedStreams(command, await reader.positions()).catch(() => undefined);
  const text = ageText({ applied, hasWriter, streams });
  if (text !== undefined) note(command, text);
}

/** The streams as NATS has them, beside what is applied. Rejects where it does not answer. */
export async function askedStreams(
  { config, context }: ConfiguredCommand,
  applied: readonly Position[],
): Promise<StreamStatus[]> {
  const connection = await openNats(findNats(config, context.host));
  try {
    const which = { prefix: config.subjectPrefix, applied, nowMs: Date.now() };
    return await streamStatuses(connection, which);
  } finally {
    await connection.close();
  }
}

interface Age {
  readonly applied: readonly AppliedStream[];
  readonly hasWriter: boolean;
  /** Undefined: NATS does not say. */
  readonly streams: readonly StreamStatus[] | undefined;
}

function ageText({ applied, hasWriter, streams }: Age): string | undefined {
  const lag = lagOf(streams ?? []);
  if (hasWriter && lag.seconds < lagSecondsMax) return undefined;
  const asOf = asOfText(applied);
  const behind = streams === undefined ? "NATS does not say what has come since" : behindText(lag);
  return hasWriter
    ? `${asOf}; ${behind}`
    : `${asOf}; nothing is applied at present, as no \`penstock effects\` runs on this database; ${behind}`;
}

function asOfText(applied: readonly AppliedStream[]): string {
  if (applied.length === 0) return "no event has been applied yet";
  const atMs = greatestOf(applied.map(({ watermarkMs }) => watermarkMs));
  const places = applied.map(({ stream, sequence }) => `${stream}:${sequence}`).join(", ");
  const at = atMs > 0 ? `${shownTime(atMs)}, ` : "";
  return `this is as of ${at}${places}`;
}

function behindText({ messages, seconds }: ReturnType<typeof lagOf>): string {
  if (messages === 0) return "no more is stored";
  const since = `the oldest for ${Math.round(seconds)} s`;
  return `not applied yet: ${counted(messages, "message")}, ${since}`;
}
