import { randomFillSync } from "node:crypto";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Typos } from "../../../src/gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../../src/gateway/intake/items.ts";
import { Tally } from "../../../src/gateway/intake/tally.ts";
import type { RequestFrames } from "../../../src/gateway/intake/work.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../../src/records/table.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
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

interface Taken {
  readonly tally: Tally;
  readonly names: string[];
}

function take(
  items: string,
  measure: typeof records.measure = (...given) => records.measure(...given),
): Taken {
  const body = Buffer.from(`{"batch":[${items}]}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const taker = new ItemTaker({
    slowScanner,
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
  const lines = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
  return { tally, names: lines.map((line) => (JSON.parse(line) as { event: string }).event) };
}

const event = (name: string) => `{"event":"${name}","distinct_id":"u"}`;
const slowEvent = (name: string) =>
  `{"event":"${name}","distinct_id":"u","properties":{"\\ud800":1}}`;

describe("one faulty event", () => {
  test("is rejected if it makes the rules or the record throw", () => {
    const measure: typeof records.measure = (item, verdict, record) => {
      const name = item.body.toString("utf8", item.table[item.row + 2]!, item.table[item.row + 3]!);
      if (name.includes("bug")) throw new Error("a bug");
      return records.measure(item, verdict, record);
    };
    const { tally, names } = take(
      [event("a"), event("bug"), event("b"), event("bug"), event("c")].join(),
      measure,
    );
    expect(names).toEqual(["a", "b", "c"]);
    expect(tally).toMatchObject({ accepted: 3, dropped: 2, errorsTotal: 2 });
    expect(tally.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, "unreadable_event"],
      [3, "unreadable_event"],
    ]);
    expect(onBug).toHaveBeenCalledTimes(1);
  });

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
