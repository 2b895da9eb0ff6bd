// Processes bodies from their scan to their lines, without HTTP and NATS.

import { randomFillSync } from "node:crypto";
import { Typos } from "../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../src/gateway/intake/items.ts";
import { Tally } from "../../src/gateway/intake/tally.ts";
import { endOfSlice, rowsAtOnceMax } from "../../src/gateway/intake/work-size.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { JsonRecordWriter } from "../../src/records/record.ts";
import { Header, type Scanner, ScanStatus } from "../../src/records/table.ts";
import { UuidSource } from "../../src/records/uuid.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { FakeFrame } from "../../test/gateway/intake/fake-frame.ts";

const receivedAtMs = Date.UTC(2026, 0, 2, 3, 4, 6);
const address = "203.0.113.77";
const frameBytes = 8_388_608;
const recordBytesMax = 4_194_304;

interface BodyTaker {
  readonly scanner: Scanner;
  /** Processes a body that has just arrived. Returns the number of stored events. */
  readonly take: (body: Buffer, rules: CompiledRules | undefined) => number;
}

/** `rows` is the maximum number of events in a body. */
export function createBodyTaker(rows: number): BodyTaker {
  const scanner = createNativeScanner(rows);
  const records = new JsonRecordWriter({
    uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
  });
  const items = new ItemTaker({
    slowScanner: createNativeScanner(1),
    createScanner: createNativeScanner,
    records,
    typos: new Typos(),
    onBug: (bug) => {
      throw bug;
    },
  });
  const sink = new FakeFrame(frameBytes + recordBytesMax);
  const sinkFor = (): FakeFrame => {
    if (sink.length > frameBytes) sink.length = 0;
    return sink;
  };
  const visitor = {
    address,
    userAgent: "Mozilla/5.0",
    request: { isEngage: false, needsTimestamp: false, receivedAtMs, skewMs: 0 },
    zoneLookups: { failed: 0 },
  };
  const take = (body: Buffer, rules: CompiledRules | undefined): number => {
    const status = scanner.scan(body);
    if (status !== ScanStatus.Ok) throw new Error(`cannot scan the body: ${status}`);
    sink.length = 0;
    const tally = new Tally();
    visitor.zoneLookups.failed = 0;
    const job: Job = {
      body,
      scanner,
      tally,
      repaired: undefined,
      additions: undefined,
      needsTimestamp: false,
      isEngage: false,
      receivedAtMs,
      skewMs: 0,
      unreadableSentAt: undefined,
      recordBytesMax,
      template: records.begin({
        projectId: "bench",
        lane: "live",
        receivedAtMs,
        sentAtMs: Number.NaN,
        clientAddress: rules?.address?.storedFor(address, receivedAtMs) ?? address,
        rulesVersion: rules?.version,
      }),
      frames: { sinkFor, endTurn() {}, finish() {}, abandon() {} },
      lane: "live",
      isBot: false,
      changesAddress: rules?.address !== undefined,
      rules: rules?.readsEvents ? rules : undefined,
      visitor,
    };
    const count = scanner.table[Header.RowCount]!;
    for (let start = 0; start < count; ) {
      const end = Math.min(
        start + rowsAtOnceMax,
        endOfSlice(scanner.table, start, { rows: count, isSlow: false, rules: job.rules }),
      );
      items.takeRows(job, start, end);
      start = end;
    }
    return tally.accepted;
  };
  return { scanner, take };
}
