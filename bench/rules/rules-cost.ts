// Measures the rules' share of the CPU time of a body, from its scan to its lines.

import { randomFillSync } from "node:crypto";
import { Typos } from "../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../src/gateway/intake/items.ts";
import { Tally } from "../../src/gateway/intake/tally.ts";
import { endOfSlice, rowsAtOnceMax } from "../../src/gateway/intake/work-size.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { JsonRecordWriter } from "../../src/records/record.ts";
import { Header, ScanStatus } from "../../src/records/table.ts";
import { UuidSource } from "../../src/records/uuid.ts";
import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import type { RulesFile } from "../../src/rules/rules-file.ts";
import { FakeFrame } from "../../test/gateway/intake/fake-frame.ts";

const receivedAtMs = Date.UTC(2026, 0, 2, 3, 4, 6);
const scanner = createNativeScanner(400_000);
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
const sink = new FakeFrame(16_777_216);

function take(body: Buffer, rules: CompiledRules | undefined): void {
  const tally = new Tally();
  const status = scanner.scan(body);
  if (status !== ScanStatus.Ok) throw new Error(`cannot scan the body: ${status}`);
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
    recordBytesMax: 4_194_304,
    template: records.begin({
      projectId: "bench",
      lane: "live",
      receivedAtMs,
      sentAtMs: Number.NaN,
      clientAddress: "203.0.113.77",
      rulesVersion: rules?.version,
    }),
    frames: {
      sinkFor: () => {
        if (sink.length > 8_388_608) sink.length = 0;
        return sink;
      },
      endTurn() {},
      finish() {},
      abandon() {},
    },
    lane: "live",
    isBot: false,
    changesAddress: false,
    rules: rules?.readsEvents ? rules : undefined,
    get visitor() {
      return { address: "203.0.113.77", userAgent: "Mozilla/5.0", request: job };
    },
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
}

function cpuMs(body: Buffer, rules: CompiledRules | undefined): number {
  take(body, rules);
  const began = process.threadCpuUsage();
  take(body, rules);
  const { user, system } = process.threadCpuUsage(began);
  return (user + system) / 1_000;
}

interface RulesCost {
  /** The CPU time of the rules. */
  readonly ms: number;
  readonly events: number;
}

export function costOfRules(file: RulesFile, body: Buffer): RulesCost {
  const rules = compileRules(file, {
    version: 1,
    secret: Buffer.alloc(32, 7),
    saltOf: () => Buffer.alloc(16, 3),
    cookieless: { projectId: "p", rootDomainOf: (host) => host },
  });
  const ms = cpuMs(body, rules) - cpuMs(body, undefined);
  return { ms, events: scanner.table[Header.RowCount]! };
}
