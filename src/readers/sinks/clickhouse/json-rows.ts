// Creates rows in JSONEachRow format. Properties are stored as text, unchanged.

import { Buffer } from "node:buffer";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { type EventColumn, type RejectedLine, type SinkRecord, textOf } from "../sink-records.ts";
import type { ServerForm } from "./tables.ts";

const chunkCharacters = 524_288;
const lastDayMs = Date.UTC(2105, 11, 31);
const ranges = {
  milliseconds: { fromMs: Date.UTC(1900), toMs: Date.UTC(2300) - 1, said: "1900 to 2299" },
  seconds: { fromMs: 0, toMs: Date.UTC(2106) - 1_000, said: "1970 to 2105" },
};
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, "0"));
const daysSeenMax = 1_000;

export class JsonRows {
  readonly #form: ServerForm;
  readonly #columns: readonly (EventColumn & { readonly member: string })[];
  readonly #range: (typeof ranges)["seconds"];
  readonly #days = new Map<number, string>();

  constructor(form: ServerForm, columns: readonly EventColumn[]) {
    this.#form = form;
    this.#columns = columns.map((column, index) => ({
      ...column,
      member: `${index === 0 ? "{" : ","}"${column.name}":`,
    }));
    this.#range = form.hasMilliseconds ? ranges.milliseconds : ranges.seconds;
  }

  timeFault({ timestampMs }: SinkRecord): string | undefined {
    const { fromMs, toMs, said } = this.#range;
    return timestampMs >= fromMs && timestampMs <= toMs
      ? undefined
      : `its timestamp ${new Date(timestampMs).toISOString()} is outside the range of ClickHouse ${this.#form.version} (${said})`;
  }

  *events(records: Iterable<SinkRecord>): Generator<Buffer, void> {
    let text = "";
    for (const record of records) {
      text += this.#event(record);
      if (text.length < chunkCharacters) continue;
      yield Buffer.from(text, "utf8");
      text = "";
    }
    if (text !== "") yield Buffer.from(text, "utf8");
  }

  *rejected(lines: Iterable<RejectedLine>): Generator<Buffer, void> {
    for (const { stream, sequence, line, storedAtMs, projectId, reason, detail, text } of lines) {
      const place = { stream, sequence, line, stored_at: this.#time(storedAtMs) };
      const what = { project_id: projectId, reason, detail, record: textOf(text) };
      yield Buffer.from(`${JSON.stringify({ ...place, ...what })}\n`, "utf8");
    }
  }

  #event(record: SinkRecord): string {
    const { timestampMs, origin, stream, sequence, line } = record;
    const { timestampSentMs } = origin;
    let text = "";
    for (const column of this.#columns) text += column.member + this.#value(record, column);
    // The day is a part of the event's key, so it must be the same when a client sends the event
    // again. It is computed from the timestamp as sent, because the corrected timestamp may differ.
    const claimedMs = Number.isNaN(timestampSentMs) ? timestampMs : timestampSentMs;
    const day = this.#day(Math.floor(Math.min(Math.max(claimedMs, 0), lastDayMs) / dayMs));
    return `${text},"day":"${day}","stream":"${stream}","sequence":${sequence},"line":${line}}\n`;
  }

  #value(record: SinkRecord, { type, isOptional, of }: EventColumn): string {
    if (type === "boolean") return of(record) ? "1" : "0";
    if (type === "object" || type === "names") return json(of(record));
    if (type === "time") {
      const ms = of(record);
      return Number.isNaN(ms) ? "null" : `"${this.#time(ms)}"`;
    }
    const text = of(record);
    if (type === "text") return JSON.stringify(text);
    return isOptional && text === "" ? "null" : `"${text}"`;
  }

  #time(ms: number): string {
    const { fromMs, toMs } = this.#range;
    const held = Math.min(Math.max(ms, fromMs), toMs);
    const dayNumber = Math.floor(held / dayMs);
    const inDay = held - dayNumber * dayMs;
    const seconds = Math.floor(inDay / 1_000);
    const [hour, minute] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
    const clock = `${twoDigits[hour]}:${twoDigits[minute]}:${twoDigits[seconds % 60]}`;
    const text = `${this.#day(dayNumber)} ${clock}`;
    if (!this.#form.hasMilliseconds) return text;
    const rest = inDay % 1_000;
    return `${text}.${rest < 100 ? "0" : ""}${rest < 10 ? "0" : ""}${rest}`;
  }

  #day(dayNumber: number): string {
    const known = this.#days.get(dayNumber);
    if (known !== undefined) return known;
    const text = dayOf(dayNumber * dayMs);
    if (this.#days.size === daysSeenMax) this.#days.clear();
    this.#days.set(dayNumber, text);
    return text;
  }
}

function json(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '""' : JSON.stringify(textOf(bytes));
}
