// Reports the age of the shown data, because a database responds even if no process writes to it.

import { greatestOf } from "../../platform/base/extremes.ts";
import type { OpenReader } from "../../readers/effects/store/open.ts";
import type { AppliedStream } from "../../readers/effects/store/port.ts";
import { lagOf, type StreamStatus, streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import { type ConfiguredCommand, note } from "../configured-command.ts";
import { findNats, openNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { shownTime } from "./shown.ts";

/** Maximum usual lag of a running process. */
const lagSecondsMax = 5;

/** Prints nothing if a process applies events without a lag. */
export async function noteAge(command: ConfiguredCommand, reader: OpenReader): Promise<void> {
  const [applied, hasWriter] = await Promise.all([reader.applied(), reader.hasWriter()]);
  const streams = await askedStreams(command, await reader.positions()).catch(() => undefined);
  const text = ageText({ applied, hasWriter, streams });
  if (text !== undefined) note(command, text);
}

/** Rejects if NATS does not respond. */
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
  /** Undefined if NATS did not respond. */
  readonly streams: readonly StreamStatus[] | undefined;
}

function ageText({ applied, hasWriter, streams }: Age): string | undefined {
  const lag = lagOf(streams ?? []);
  if (hasWriter && lag.seconds < lagSecondsMax) return undefined;
  const asOf = asOfText(applied);
  const behind =
    streams === undefined ? "the lag is unknown, because NATS did not respond" : behindText(lag);
  return hasWriter
    ? `${asOf}; ${behind}`
    : `${asOf}; no \`penstock effects\` runs on this database, so nothing is being applied; ${behind}`;
}

function asOfText(applied: readonly AppliedStream[]): string {
  if (applied.length === 0) return "no event has been applied yet";
  const atMs = greatestOf(applied.map(({ watermarkMs }) => watermarkMs));
  const places = applied.map(({ stream, sequence }) => `${stream}:${sequence}`).join(", ");
  const at = atMs > 0 ? `${shownTime(atMs)}, ` : "";
  return `data as of ${at}${places}`;
}

function behindText({ messages, seconds }: ReturnType<typeof lagOf>): string {
  if (messages === 0) return "no newer events are stored";
  const since = `the oldest is ${Math.round(seconds)} s old`;
  return `not applied yet: ${counted(messages, "message")}, ${since}`;
}
