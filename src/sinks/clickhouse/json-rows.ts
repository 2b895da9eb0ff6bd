// Rows as ClickHouse's JSONEachRow has them, and which events' times it has no place for. What
// lines say is sent as it was: properties are text to the server.

import { Buffer } from "node:buffer";
import type { RejectedLine, SinkRecord } from "../sink-target.ts";
import type { ServerForm } from "./tables.ts";

const chunkCharacters = 524_288;
/** What a column of days can hold in every version. */
const lastDayMs = Date.UTC(2105, 11, 31);
const ranges = {
  milliseconds: { fromMs: Date.UTC(1900), toMs: Date.UTC(2300) - 1, said: "1900 to 2299" },
  seconds: { fromMs: 0, toMs: Date.UTC(2106) - 1_000, said: "1970 to 2105" },
};

function rangeOf({ hasMilliseconds }: ServerForm): (typeof ranges)["seconds"] {
  return hasMilliseconds ? ranges.milliseconds : ranges.seconds;
}

/** Why the server would take another time for the event's; undefined: it would not. */
export function timeFault({ timestampMs }: SinkRecord, form: ServerForm): string | undefined {
  const { fromMs, toMs, said } = rangeOf(form);
  return timestampMs >= fromMs && timestampMs <= toMs
    ? undefined
    : `its timestamp ${new Date(timestampMs).toISOString()} is outside of ${said}, which ClickHouse ${form.version} has`;
}

/** Some hundred KiB each, or one event. */
export function* eventChunks(
  records: Iterable<SinkRecord>,
  form: ServerForm,
  { withPerson }: { readonly withPerson: boolean },
): Generator<Buffer, void> {
  let text = "";
  for (const record of records) {
    text += `${eventRow(record, form)}${withPerson ? personMember(record) : ""}}\n`;
    if (text.length < chunkCharacters) continue;
    yield Buffer.from(text, "utf8");
    text = "";
  }
  if (text !== "") yield Buffer.from(text, "utf8");
}

function personMember({ personUuid }: SinkRecord): string {
  return `,"person_uuid":${personUuid === "" ? "null" : `"${personUuid}"`}`;
}

/** Without its end. */
function eventRow(record: SinkRecord, form: ServerForm): string {
  const { projectId, uuid, event, distinctId, ip, kind, stream, sequence, line } = record;
  const { timestampMs, timestampSentMs, receivedAtMs, storedAtMs, sentAtMs } = record;
  const time = (ms: number): string => (Number.isNaN(ms) ? "null" : `"${timeText(ms, form)}"`);
  // The client's own word is the same each time that it sends an event, and the corrected time is
  // another: it is this day by which the table tells an event that was sent again.
  const claimedMs = Number.isNaN(timestampSentMs) ? timestampMs : timestampSentMs;
  const day = new Date(Math.min(Math.max(claimedMs, 0), lastDayMs)).toISOString().slice(0, 10);
  return (
    `{"project_id":${quoted(projectId)},"uuid":"${uuid}","event":${quoted(event)}` +
    `,"distinct_id":${quoted(distinctId)},"timestamp":${time(timestampMs)}` +
    `,"received_at":${time(receivedAtMs)},"stored_at":${time(storedAtMs)}` +
    `,"timestamp_sent":${time(timestampSentMs)},"sent_at":${time(sentAtMs)},"day":"${day}"` +
    `,"ip":${quoted(ip)},"kind":${quoted(kind)},"person_profile":${Number(record.personProfile)}` +
    `,"historical":${Number(record.historical)},"properties":${json(record.properties)}` +
    `,"set":${json(record.set)},"set_once":${json(record.setOnce)}` +
    `,"unset":${json(record.unset)},"stream":${quoted(stream)},"sequence":${sequence}` +
    `,"line":${line}`
  );
}

export function rejectedRow(line: RejectedLine, form: ServerForm): string {
  const { stream, sequence, storedAtMs, projectId, reason, detail, text } = line;
  const row = { stream, sequence, line: line.line, stored_at: timeText(storedAtMs, form) };
  const record = { project_id: projectId, reason, detail, record: textOf(text).toWellFormed() };
  return `${JSON.stringify({ ...row, ...record })}\n`;
}

/** What is outside of what the server has is put at its edge. */
export function timeText(ms: number, form: ServerForm): string {
  const { fromMs, toMs } = rangeOf(form);
  const text = new Date(Math.min(Math.max(ms, fromMs), toMs)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, form.hasMilliseconds ? 23 : 19)}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function json(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '""' : JSON.stringify(textOf(bytes));
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}
