import { randomFillSync } from "node:crypto";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Typos } from "../../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../../src/gateway/intake/items.ts";
import { Tally } from "../../../src/gateway/intake/tally.ts";
import type { RequestFrames } from "../../../src/gateway/intake/work.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { Change, Edit } from "../../../src/records/item-changes.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import { RowTasks } from "../../../src/records/row-tasks.ts";
import { type BackgroundScanner, Header, Row, ScanStatus } from "../../../src/records/table.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
import type { CompiledRules } from "../../../src/rules/compile.ts";
import { RuleEffect } from "../../../src/rules/compiled-rule.ts";
import { compiled, ruleOf } from "../../rules/compiled-rules.ts";
import { FakeFrame } from "./fake-frame.ts";

const records = new JsonRecordWriter({
  uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
});
const recordBytesMax = 1_048_576;
const onBug = vi.fn();

let scanner: BackgroundScanner;
let slowScanner: BackgroundScanner;
let sink: FrameSink;

beforeEach(() => {
  onBug.mockReset();
  scanner = createNativeScanner(16);
  slowScanner = createNativeScanner(16);
  sink = new FakeFrame(65_536);
});

interface StoredLine {
  readonly event: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

interface Taken {
  readonly tally: Tally;
  readonly lines: readonly StoredLine[];
  readonly names: string[];
}

interface TakeOptions {
  readonly measure?: typeof records.measure;
  readonly rules?: CompiledRules;
}

function take(
  items: string,
  { measure = (...given) => records.measure(...given), rules }: TakeOptions = {},
): Taken {
  const body = Buffer.from(`{"batch":[${items}]}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const taker = new ItemTaker({
    slowScanner,
    createScanner: createNativeScanner,
    records: {
      begin: (context) => records.begin(context),
      measure,
      write: (...given) => records.write(...given),
    },
    typos: new Typos(),
    onBug,
  });
  const tally = new Tally();
  const frames: RequestFrames = { sinkFor: () => sink, endTurn() {}, finish() {}, abandon() {} };
  const template = records.begin({
    projectId: "a",
    lane: "live",
    receivedAtMs: 0,
    sentAtMs: Number.NaN,
    clientAddress: "",
  });
  const facts = {
    lane: "live" as const,
    isBot: false,
    needsTimestamp: false,
    isEngage: false,
    receivedAtMs: 0,
    skewMs: 0,
    unreadableSentAt: undefined,
  };
  const job: Job = {
    ...facts,
    rules,
    body,
    repaired: undefined,
    additions: undefined,
    scanner,
    tally,
    recordBytesMax,
    template,
    frames,
    quarantine: () => {},
  };
  taker.takeRows(job, 0, scanner.table[Header.RowCount]!);
  const texts = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
  const lines = texts.map((line) => JSON.parse(line) as StoredLine);
  return { tally, lines, names: lines.map((line) => line.event) };
}

const event = (name: string) => `{"event":"${name}","distinct_id":"u"}`;
const slowEvent = (name: string) =>
  `{"event":"${name}","distinct_id":"u","properties":{"\\ud800":1}}`;

/** Throws if the event of a row has the name of faulty events. */
function throwIfFaulty(body: Buffer, table: Uint32Array, row: number): void {
  const at = Header.Words + row * Row.Words;
  const name = body.toString("utf8", table[at + Row.EventStart]!, table[at + Row.EventEnd]!);
  if (name.includes("bug")) throw new Error("a bug");
}

function throwIfAnyFaulty(body: Buffer, table: Uint32Array, tasks: Uint32Array): void {
  for (let index = 0; index < tasks[RowTasks.Count]!; index++)
    throwIfFaulty(body, table, tasks[RowTasks.First]! + index);
}

/** The functions of a scanner that throw for faulty events. */
const faulty = {
  planRows: ({ planRows }) => ({
    planRows: (body, table, slots, tasks) => {
      throwIfAnyFaulty(body, table, tasks);
      planRows(body, table, slots, tasks);
    },
  }),
  findMembers: (good) => ({
    findMembers: (body, tasks, ...others) => {
      throwIfAnyFaulty(body, good.table, tasks);
      return good.findMembers(body, tasks, ...others);
    },
  }),
  changeItems: ({ changeItems }) => ({
    changeItems: (body, table, changes, ...others) => {
      let at = 1;
      for (let change = 0; change < changes[0]!; change++) {
        throwIfFaulty(body, table, changes[at + Change.Row]!);
        at += Change.Words + changes[at + Change.Edits]! * Edit.Words;
      }
      return changeItems(body, table, changes, ...others);
    },
  }),
} satisfies Record<string, (good: BackgroundScanner) => Partial<BackgroundScanner>>;

const five = [event("a"), event("bug"), event("b"), event("bug"), event("c")].join();

describe("one faulty event", () => {
  test("is rejected if the record writer throws for it", () => {
    const measure: typeof records.measure = (item, verdict, record) => {
      throwIfFaulty(item.body, item.table, (item.row - Header.Words) / Row.Words);
      return records.measure(item, verdict, record);
    };
    const { tally, names } = take(five, { measure });
    expect(names).toEqual(["a", "b", "c"]);
    expect(tally).toMatchObject({ accepted: 3, dropped: 2, errorsTotal: 2 });
    expect(tally.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, "unreadable_event"],
      [3, "unreadable_event"],
    ]);
    expect(onBug).toHaveBeenCalledTimes(1);
  });

  test.each([
    ["planRows", { changed: 3, dropped: 1 }],
    ["findMembers", { changed: 3, dropped: 1 }],
    // The rules have already counted all events, and count each of them again.
    ["changeItems", { changed: 5 + 5, dropped: 1 + 1 }],
  ] as const)(
    "is rejected if %s throws for it, and the others follow the rules",
    (name, counted) => {
      scanner = { ...scanner, ...faulty[name](scanner) };
      slowScanner = { ...slowScanner, ...faulty[name](slowScanner) };
      // The addon applies rules without conditions.
      for (const match of [{}, { lane: "live" as const }]) {
        onBug.mockReset();
        sink.rollback();
        const rules = compiled([
          ruleOf(match, { kind: "set", values: new Map([["source", "web"]]) }),
          ruleOf({ event: ["c"] }, { kind: "drop" }),
        ]);
        const { tally, lines } = take(five, { rules });
        expect(lines.map(({ event, properties }) => [event, properties])).toEqual([
          ["a", { source: "web" }],
          ["b", { source: "web" }],
        ]);
        expect(tally).toMatchObject({ accepted: 2, filtered: 1, dropped: 2 });
        expect(tally.errors.map(({ index }) => index)).toEqual([1, 3]);
        const [set, drop] = rules.rules.map(({ counts }) => counts);
        expect(set![RuleEffect.changed]).toBe(counted.changed);
        expect(drop![RuleEffect.dropped]).toBe(counted.dropped);
        expect(onBug).toHaveBeenCalledTimes(1);
      }
    },
  );

  test("fails its request if there is no memory to scan the event again", () => {
    const scan = slowScanner.scan.bind(slowScanner);
    let calls = 0;
    slowScanner = {
      ...slowScanner,
      scan: (body) => (++calls === 2 ? ScanStatus.OutOfMemory : scan(body)),
    };
    expect(() => take([slowEvent("a"), slowEvent("b")].join())).toThrow("no memory");
    expect(onBug).not.toHaveBeenCalled();
    expect(sink.events).toBe(1);
  });

  test("is stored if its distinct id is cut within a multi-byte character", () => {
    for (let fill = 8_176; fill < 8_196; fill++) {
      for (const letter of ["é", "€", "😀", "\\n", "\\u00e9", "\\ud83d\\ude00"]) {
        const text = "x".repeat(fill) + letter.repeat(400);
        const ids = [
          `"${text}"`,
          `{"a":"${text}"}`,
          `["${text}"]`,
          `{"a":"${letter.repeat(3_000)}"}`,
        ];
        const { tally } = take(ids.map((id) => `{"event":"e","distinct_id":${id}}`).join());
        expect(tally.errors).toEqual([]);
        expect(tally.accepted).toBe(4);
        sink.rollback();
      }
    }
    expect(onBug).not.toHaveBeenCalled();
  });
});
