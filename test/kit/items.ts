// The real scanner, rules and record writer without a gateway. The test controls the times and
// clocks.

import { randomFillSync } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { Typos } from "../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../src/gateway/intake/items.ts";
import { readSentAt } from "../../src/gateway/intake/plain-protocol.ts";
import type { QuarantinedItem } from "../../src/gateway/intake/quarantine-port.ts";
import { Tally } from "../../src/gateway/intake/tally.ts";
import { endOfSlice } from "../../src/gateway/intake/work-size.ts";
import type { ChangeFunctions } from "../../src/records/item-changes.ts";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import { JsonRecordWriter } from "../../src/records/record.ts";
import {
  Extra,
  extraOf,
  Header,
  hasExtra,
  MoreShift,
  Row,
  ScanStatus,
} from "../../src/records/table.ts";
import { UuidSource } from "../../src/records/uuid.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { FakeFrame } from "../gateway/intake/fake-frame.ts";
import { changeItemsByScan } from "./reference-scanner/item-changes.ts";
import { createReferenceScanner } from "./reference-scanner/scanner.ts";

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
  /** Why they are there. */
  readonly causes: readonly Pick<QuarantinedItem, "reason" | "detail" | "rule">[];
}

export interface Circumstances {
  readonly historical?: boolean;
  readonly isEngage?: boolean;
  readonly clientAddress?: string;
  readonly sentAtMs?: number;
  readonly rules?: CompiledRules;
  readonly isBot?: boolean;
  readonly userAgent?: string;
  /** The members that a v1 request adds to the properties of each event. */
  readonly additions?: string;
}

const scanner = createNativeScanner(4_096);
const records = new JsonRecordWriter({
  uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
});
const items = new ItemTaker({
  slowScanner: { ...createNativeScanner(4_096), changeItems: changeItemsTwice },
  createScanner: createNativeScanner,
  records,
  typos: new Typos(),
  onBug: (bug) => {
    throw bug;
  },
});

/** Changes items with the addon, and compares the result with that of a scan of each changed text. */
function changeItemsTwice(...given: Parameters<ChangeFunctions["changeItems"]>): number {
  const [body, table, changes, texts, secret, target, targetTable] = given;
  const count = changes[0]!;
  const [text, rows] = [Buffer.alloc(target.length), new Uint32Array(targetTable.length)];
  const to = [texts, secret, text, rows] as const;
  const expectedEnd = changeItemsByScan(
    createReferenceScanner(1),
    body,
    table,
    changes.slice(),
    ...to,
  );
  const end = loadAddon().changeItems(...given);
  if (end !== expectedEnd || text.compare(target, 0, end, 0, end) !== 0)
    throw new Error("The addon writes other changed texts than the reference");
  for (let row = Header.Words; row < Header.Words + count * Row.Words; row += Row.Words)
    if (!isDeepStrictEqual(wordsOf(rows, row), wordsOf(targetTable, row)))
      throw new Error("The addon writes other rows of changed texts than a scan");
  return end;
}

/** Returns the row without its flags: the row of a changed item may have more of them than needed. */

function wordsOf(table: Uint32Array, row: number): readonly Uint32Array[] {
  const extra = extraOf(table, row);
  const extraWords = hasExtra(table, row) ? Extra.Words : 0;
  const words = table.slice(row, row + Row.Words);
  words[Row.MoreTypes]! &= (1 << MoreShift.Flags) - 1;
  return [words, table.slice(extra, extra + extraWords)];
}

export function take(body: unknown, circumstances: Circumstances = {}): Taken {
  const {
    historical = false,
    isEngage = false,
    clientAddress = "",
    sentAtMs: queryMs = Number.NaN,
    rules,
    isBot = false,
    userAgent = "",
    additions,
  } = circumstances;
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const status = scanner.scan(bytes);
  if (status !== ScanStatus.Ok) throw new Error(`Scanning the body: status ${status}`);
  const sentAt = readSentAt(bytes, scanner.table, queryMs);
  const lane = historical ? "historical" : "live";
  const context = {
    projectId: "p",
    lane,
    receivedAtMs,
    sentAtMs: sentAt.ms,
    rulesVersion: rules?.version,
  } as const;
  const template = records.begin({ ...context, clientAddress });
  const addresslessTemplate = records.begin({ ...context, clientAddress: "" });
  const sink = new FakeFrame(4 * bytes.length + 65_536);
  let room = 0;
  const measured: number[] = [];
  const tally = new Tally();
  const skewMs = Number.isNaN(sentAt.ms) ? 0 : sentAt.ms - receivedAtMs;
  const request = { needsTimestamp: historical, isEngage, receivedAtMs, skewMs };
  const visitor = { address: clientAddress, userAgent, request, zoneLookups: { failed: 0 } };
  const quarantined: string[] = [];
  const causes: Taken["causes"][number][] = [];
  const job: Job = {
    rules,
    lane,
    isBot,
    visitor,
    addresslessTemplate,
    body: bytes,
    repaired: undefined,
    additions,
    scanner,
    tally,
    template,
    recordBytesMax: 16_777_216,
    ...request,
    unreadableSentAt: sentAt.unreadable,
    quarantine: ({ body, start, end, reason, detail, rule }) => {
      quarantined.push(body.toString("utf8", start, end));
      causes.push({ reason, detail, rule });
    },
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
  const rows = scanner.table[Header.RowCount]!;
  for (let start = 0; start < rows; ) {
    const end = endOfSlice(scanner.table, start, { rows, isSlow: additions !== undefined, rules });
    items.takeRows(job, start, end);
    start = end;
  }
  if (sink.length > room)
    throw new Error(`A line is longer than it was measured: ${sink.length}, ${room}`);
  const lines = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
  return {
    lines,
    measured,
    quarantined,
    causes,
    records: lines.map((line) => JSON.parse(line) as StoredRecord),
    warnings: tally.warnings.map(({ code }) => code),
    details: tally.warnings.map(({ detail }) => detail),
    errors: tally.errors.map(({ code }) => code),
    dropped: tally.dropped,
    filtered: tally.filtered,
  };
}
