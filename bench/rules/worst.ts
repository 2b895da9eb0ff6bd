// Measures the rules' share of the time of large bodies, with the files and bodies that take the
// longest.

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
import { parseRules } from "../../src/rules/parse.ts";
import { FakeFrame } from "../../test/gateway/intake/fake-frame.ts";
import { bodyOf, largestSize, worstCases } from "./worst-cases.ts";

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
    visitor: undefined,
  } as Job;
  (job as { visitor?: unknown }).visitor = {
    address: "203.0.113.77",
    userAgent: "Mozilla/5.0",
    request: job,
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

const only = process.argv[2] ?? "";
const bytes = Number(process.argv[3] ?? 2) * 1_048_576;

function cpuMs(body: Buffer, rules: CompiledRules | undefined): number {
  take(body, rules);
  const began = process.threadCpuUsage();
  take(body, rules);
  const { user, system } = process.threadCpuUsage(began);
  return (user + system) / 1_000;
}

process.stdout.write("ms for 20 MB  ns per byte  us per event  size  case\n");
for (const worst of worstCases.filter(({ name }) => name.includes(only))) {
  const size = largestSize(worst);
  const parsed = parseRules(worst.file(size));
  if ("errors" in parsed) throw new Error(`${worst.name}: ${parsed.errors[0]!.message}`);
  const rules = compileRules(parsed.rules, {
    version: 1,
    secret: Buffer.alloc(32, 7),
    saltOf: () => Buffer.alloc(16, 3),
    cookieless: { projectId: "p", rootDomainOf: (host) => host },
  });
  const body = bodyOf((index) => worst.event(index, size), bytes);
  const ms = cpuMs(body, rules) - cpuMs(body, undefined);
  const events = scanner.table[Header.RowCount]!;
  const columns = [
    ((ms * 20 * 1_048_576) / body.length).toFixed(0).padStart(12),
    ((ms * 1e6) / body.length).toFixed(1).padStart(11),
    ((ms * 1e3) / events).toFixed(2).padStart(13),
    String(size).padStart(5),
  ];
  process.stdout.write(`${columns.join(" ")}  ${worst.name}\n`);
}
