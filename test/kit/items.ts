// The real scanner, rules and record writer without a gateway. The test controls the times and
// clocks.

import { randomFillSync } from "node:crypto";
import { Typos } from "../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../src/gateway/intake/items.ts";
import { readSentAt } from "../../src/gateway/intake/plain-protocol.ts";
import { Tally } from "../../src/gateway/intake/tally.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { JsonRecordWriter } from "../../src/records/record.ts";
import { Header, ScanStatus } from "../../src/records/table.ts";
import { UuidSource } from "../../src/records/uuid.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { FakeFrame } from "../gateway/intake/fake-frame.ts";

export const receivedAtMs = Date.parse("2026-06-15T12:00:00.000Z");
export const receivedAt = new Date(receivedAtMs).toISOString();

export type StoredRecord = Record<string, unknown>;

interface Taken {
  readonly lines: readonly string[];
  readonly records: readonly StoredRecord[];
  readonly measured: readonly number[];
  readonly warnings: readonly string[];
  readonly details: readonly string[];
  readonly errors: readonly string[];
  readonly dropped: number;
  /** Number of events that the rules do not store. */
  readonly filtered: number;
  /** The texts of the items in quarantine. */
  readonly quarantined: readonly string[];
  /** Numbers of events that a schema has checked, by mode and result. */
  readonly schemaResults: Readonly<Record<string, number>>;
}

export interface Circumstances {
  readonly historical?: boolean;
  readonly isEngage?: boolean;
  readonly clientAddress?: string;
  readonly sentAtMs?: number;
  readonly rules?: CompiledRules;
  readonly isBot?: boolean;
  readonly userAgent?: string;
}

const scanner = createNativeScanner(4_096);
const records = new JsonRecordWriter({
  uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
});
const items = new ItemTaker({
  slowScanner: createNativeScanner(4_096),
  createScanner: createNativeScanner,
  records,
  typos: new Typos(),
  onBug: (bug) => {
    throw bug;
  },
});

export function take(body: unknown, circumstances: Circumstances = {}): Taken {
  const {
    historical = false,
    isEngage = false,
    clientAddress = "",
    sentAtMs: queryMs = Number.NaN,
    rules,
    isBot = false,
    userAgent = "",
  } = circumstances;
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const status = scanner.scan(bytes);
  if (status !== ScanStatus.Ok) throw new Error(`Scanning the body: status ${status}`);
  const sentAt = readSentAt(bytes, scanner.table, queryMs);
  const lane = historical ? "historical" : "live";
  const context = { projectId: "p", lane, receivedAtMs, sentAtMs: sentAt.ms } as const;
  const template = records.begin({ ...context, clientAddress });
  const addresslessTemplate = records.begin({ ...context, clientAddress: "" });
  const sink = new FakeFrame(4 * bytes.length + 65_536);
  let room = 0;
  const measured: number[] = [];
  const tally = new Tally();
  const skewMs = Number.isNaN(sentAt.ms) ? 0 : sentAt.ms - receivedAtMs;
  const request = { needsTimestamp: historical, isEngage, receivedAtMs, skewMs };
  const visitor = { address: clientAddress, userAgent, request };
  const quarantined: string[] = [];
  const job: Job = {
    ...(rules === undefined
      ? {}
      : { rules: { rules, lane, isEngage, isBot, visitor, rewritesItems: false } }),
    addresslessTemplate,
    body: bytes,
    repaired: undefined,
    additions: undefined,
    scanner,
    tally,
    template,
    recordBytesMax: 16_777_216,
    ...request,
    unreadableSentAt: sentAt.unreadable,
    quarantine: ({ body, start, end }) => void quarantined.push(body.toString("utf8", start, end)),
    frames: {
      sinkFor(lineBytes) {
        if (sink.length > room)
          throw new Error(`A line is longer than it was measured: ${sink.length}, ${room}`);
        room = sink.length + lineBytes;
        measured.push(lineBytes);
        return sink;
      },
      endTurn() {},
      finish() {},
      abandon() {},
    },
  };
  items.takeRows(job, 0, scanner.table[Header.RowCount]!);
  if (sink.length > room)
    throw new Error(`A line is longer than it was measured: ${sink.length}, ${room}`);
  const lines = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
  const schemaResults: Record<string, number> = {};
  const metrics = {
    events() {},
    warnings() {},
    slowPathItems() {},
    distinctIdsCut() {},
    schemaResults(mode: string, result: string, count: number) {
      schemaResults[`${mode} ${result}`] = count;
    },
  };
  tally.countReported(lane, metrics, true);
  return {
    lines,
    measured,
    quarantined,
    records: lines.map((line) => JSON.parse(line) as StoredRecord),
    warnings: tally.warnings.map(({ code }) => code),
    details: tally.warnings.map(({ detail }) => detail),
    errors: tally.errors.map(({ code }) => code),
    dropped: tally.dropped,
    filtered: tally.filtered,
    schemaResults,
  };
}
