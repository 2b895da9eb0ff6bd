import { iso, statusRows, statusValue } from "../../readers/effects/http/shapes.ts";
import { shownPlace, storePlace } from "../../readers/effects/store/open.ts";
import { lagMessages, type StreamStatus, withoutLag } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import { type ConfiguredCommand, note, say } from "../context.ts";
import { counted, table } from "../terminal.ts";
import { askedStreams, withReader } from "./database.ts";

export async function status(command: ConfiguredCommand, asJson: boolean): Promise<void> {
  const place = storePlace(command.config);
  await withReader(command, async (reader) => {
    const [applied, rows] = await Promise.all([reader.positions(), statusRows(reader)]);
    const streams = await withLag(command, applied);
    if (asJson) {
      const value = { database: shownPlace(place), ...statusValue(streams, rows) };
      say(command, JSON.stringify(value, undefined, 2));
      return;
    }
    const { totals, incidents, rejected } = rows;
    say(command, `database ${shownPlace(place)}`);
    say(
      command,
      [
        counted(totals.persons, "person"),
        counted(totals.groups, "group"),
        counted(totals.openSpikes, "open spike"),
        `${totals.rejected} rejected`,
        counted(totals.incidents, "incident"),
      ].join(", "),
    );
    if (streams.length === 0) say(command, "no stream has been applied yet");
    else for (const line of streamTable(streams)) say(command, line);
    for (const { kind, stream, detail } of incidents)
      say(command, `incident ${kind} of ${stream}: ${detail}`);
    for (const { reason, projectId, detail, atMs } of rejected)
      say(command, `rejected ${reason} of ${projectId}, ${iso(atMs)}: ${detail}`);
  });
}

async function withLag(
  command: ConfiguredCommand,
  applied: readonly Position[],
): Promise<StreamStatus[]> {
  try {
    return await askedStreams(command, applied);
  } catch (error) {
    note(command, `the lag is unknown: ${(error as Error).message}`);
    return applied.map(withoutLag);
  }
}

function streamTable(streams: readonly StreamStatus[]): string[] {
  return table([
    ["STREAM", "APPLIED TO", "OF", "LAG"],
    ...streams.map((one) => [
      one.stream,
      ...[one.sequence, one.lastSequence ?? "?", lagMessages(one) ?? "?"].map(String),
    ]),
  ]);
}
