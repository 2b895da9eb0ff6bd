import fc from "fast-check";
import { expect, test } from "vitest";
import { StreamLedger } from "../../../src/gateway/streams/stream-ledger.ts";
import { type StreamReading, StreamStates } from "../../../src/platform/nats/readiness.ts";

const bytesMax = 1_000_000;

interface Message {
  readonly sequence: number;
  readonly projectId: string;
  readonly bytes: number;
}

class Model {
  readonly state = new StreamStates("test", 1).all[0]!;
  readonly ledger = new StreamLedger(this.state);
  #asked: StreamReading | undefined;
  messages: Message[] = [];
  created = "one";
  bytesMax = bytesMax;

  constructor() {
    this.read();
  }

  get bytes(): number {
    return this.messages.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  held(projectId: string): number {
    const own = this.messages.filter((message) => message.projectId === projectId);
    return own.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  counted(projectId: string): number {
    return this.ledger.holdings.get(projectId)?.stored ?? 0;
  }

  store(projectId: string, bytes: number): void {
    const sequence = ++this.state.sequence;
    this.messages.push({ sequence, projectId, bytes });
    this.ledger.add(projectId, bytes);
  }

  expire(count: number): void {
    this.messages.splice(0, count);
    this.read();
  }

  read(): boolean {
    this.ask();
    return this.answer();
  }

  ask(): void {
    const first = this.messages[0]?.sequence ?? this.state.sequence + 1;
    this.#asked = {
      created: this.created,
      firstSequence: first,
      lastSequence: this.state.sequence,
      deleted: this.state.sequence - first + 1 - this.messages.length,
      bytes: this.bytes,
      bytesMax: this.bytesMax,
    };
  }

  answer(): boolean {
    this.state.reading = this.#asked;
    return this.ledger.read();
  }

  isOver(projectId: string, share: number): boolean {
    const holding = this.ledger.holdings.get(projectId);
    return holding !== undefined && this.ledger.isOver(holding, share);
  }

  mayUseReserve(projectId: string, projects: number): boolean {
    return !this.ledger.isOverReserve(this.ledger.holdings.get(projectId), projects);
  }

  flood(projectId: string, share: number, projects: number, bytes = 1_000): void {
    while (
      !this.isOver(projectId, share) &&
      this.mayUseReserve(projectId, projects) &&
      this.bytes + bytes <= this.bytesMax
    )
      this.store(projectId, bytes);
  }
}

test("a project gets its full share of a stream despite other projects", () => {
  const stream = new Model();
  stream.flood("one", 40, 3);
  expect(stream.held("one")).toBe(400_000);
  stream.flood("other", 40, 3);
  expect(stream.held("other")).toBe(400_000);
  // The project gets its own share while it exceeds the general share.
  expect(stream.isOver("one", 45)).toBe(false);
  expect(stream.isOver("one", 100)).toBe(false);
});

test("a burst of large messages after small messages counts in full", () => {
  const stream = new Model();
  for (let round = 0; round < 20; round++) {
    stream.store("hidden", 10);
    for (let times = 0; times < 5; times++) stream.store("hidden", 6_000);
    stream.store("quiet", 10);
    stream.read();
  }
  expect(stream.counted("hidden")).toBe(stream.held("hidden"));
  expect(stream.counted("quiet")).toBe(200);
  expect(stream.isOver("hidden", 60)).toBe(true);
});

test("messages that left the stream no longer count", () => {
  const stream = new Model();
  for (let times = 0; times < 640; times++) stream.store(`p${times % 2}`, 700);
  for (let left = 0; left < 640; left += 7) {
    stream.expire(7);
    for (const projectId of ["p0", "p1"]) {
      expect(stream.counted(projectId)).toBeGreaterThanOrEqual(stream.held(projectId));
      expect(stream.counted(projectId)).toBeLessThanOrEqual(stream.held(projectId) + 1_400);
    }
  }
  stream.expire(640);
  expect([...stream.ledger.holdings.keys()]).toEqual([]);
});

test("the ledger keeps few slices per project", () => {
  const stream = new Model();
  for (let times = 0; times < 6_400; times++) stream.store("little", 1);
  stream.flood("much", 100, 2, 100);
  const slicesOf = (projectId: string): number =>
    stream.ledger.holdings.get(projectId)!.slices.own.length / 2;
  expect(slicesOf("little")).toBeLessThan(8);
  expect(slicesOf("much")).toBeLessThan(1_024);
  expect(stream.counted("much")).toBe(stream.held("much"));
});

test("no bytes count after the whole stream is purged or recreated", () => {
  const stream = new Model();
  stream.flood("p", 50, 2);
  stream.expire(stream.messages.length);
  expect(stream.counted("p")).toBe(0);
  stream.flood("p", 50, 2);
  stream.created = "two";
  stream.messages = [];
  stream.state.sequence = 0;
  expect(stream.read()).toBe(true);
  expect(stream.counted("p")).toBe(0);
  expect(stream.isOver("p", 50)).toBe(false);
  expect(stream.read()).toBe(false);
});

test("the purged messages of one project stop counting", () => {
  const stream = new Model();
  stream.store("a", 200_000);
  stream.store("b", 700_000);
  const record = new Map(stream.ledger.send(true));
  stream.ledger.sent(true);
  stream.messages.shift();
  stream.messages.unshift({ sequence: 1, projectId: "c", bytes: 10 });
  stream.read();
  stream.ledger.forgetPurged(stream.ledger.holdings.get("a")!, Number.POSITIVE_INFINITY);
  expect(stream.counted("a")).toBe(0);
  expect(stream.counted("b")).toBe(700_000);
  stream.ledger.load(record);
  expect(stream.counted("a")).toBe(0);
  expect(stream.ledger.send(false)).toEqual([["b", [2, 700_000]]]);
});

test("checking a project's access to the last tenth of the stream changes nothing", () => {
  const stream = new Model();
  stream.flood("flood", 100, 4);
  const asked = () => [stream.mayUseReserve("flood", 4), stream.mayUseReserve("new", 4)];
  expect([asked(), asked(), asked()]).toEqual([
    [false, true],
    [false, true],
    [false, true],
  ]);
});

test("shares change with the limit of the stream", () => {
  const stream = new Model();
  stream.flood("p", 50, 2);
  stream.bytesMax = 2 * bytesMax;
  stream.read();
  expect(stream.isOver("p", 50)).toBe(false);
  stream.bytesMax = Number.POSITIVE_INFINITY;
  stream.read();
  expect(stream.isOver("p", 1)).toBe(false);
  expect(stream.mayUseReserve("p", 2)).toBe(true);
});

test("bytes in flight count toward the share until their outcome is known", () => {
  const stream = new Model();
  stream.store("p", 400_000);
  stream.ledger.addUnderWay("p", 200_000);
  expect(stream.isOver("p", 50)).toBe(true);
  stream.ledger.addUnderWay("p", -200_000);
  expect(stream.isOver("p", 50)).toBe(false);
});

test("a project may use its share of the last tenth in addition", () => {
  const stream = new Model();
  for (let times = 0; times < 600; times++) stream.store("main", 1_000);
  stream.flood("flood", 75, 4);
  // Nine tenths of the share, and a quarter of the stream's last tenth.
  expect(stream.held("flood")).toBe(325_000);
  for (let times = 0; times < 24; times++) {
    stream.store("main", 1_000);
    expect(stream.mayUseReserve("main", 4)).toBe(true);
  }
  expect(stream.mayUseReserve("newcomer", 4)).toBe(true);
  stream.store("main", 1_000);
  expect(stream.mayUseReserve("main", 4)).toBe(false);
});

test("bytes stored since the last reading count toward the last tenth's limit", () => {
  const model = new Model();
  for (let filled = 0; filled < 930_000; filled += 1_000) {
    if (filled % 50_000 === 0) model.ask();
    model.store("main", 1_000);
    if (filled % 50_000 === 40_000) model.answer();
  }
  expect(model.mayUseReserve("main", 10)).toBe(false);
  // Bytes that the leader's answer included are not counted twice.
  expect(model.ledger.excess).toBeLessThan(2_000);
});

test("a flood leaves every project its share of the last tenth", () => {
  const floods = fc.array(
    fc.record({
      project: fc.integer({ min: 0, max: 4 }),
      messages: fc.integer({ min: 1, max: 400 }),
      expired: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 10, maxLength: 60 },
  );
  fc.assert(
    fc.property(floods, fc.integer({ min: 20, max: 99 }), (all, share) => {
      const stream = new Model();
      const projects = 6;
      for (const { project, messages, expired } of all) {
        const id = `p${project}`;
        for (let sent = 0; sent < messages; sent++) {
          if (stream.isOver(id, share) || !stream.mayUseReserve(id, projects)) break;
          stream.store(id, 1_000);
        }
        expect(stream.bytes).toBeLessThan(bytesMax);
        if (expired > 40) stream.expire(expired);
        expect(stream.isOver("quiet", share)).toBe(false);
        expect(stream.mayUseReserve("quiet", projects)).toBe(true);
      }
      const before = stream.bytes;
      stream.flood("quiet", share, projects, 100);
      const part = (bytesMax - Math.max(before, 0.9 * bytesMax)) / projects;
      expect(stream.held("quiet")).toBeGreaterThanOrEqual(Math.floor(part / 100) * 100);
    }),
  );
});

test("a usage record replaces the previous usage record", () => {
  const stream = new Model();
  stream.store("p", 100_000);
  stream.state.sequence = 10;
  stream.messages.push({ sequence: 9, projectId: "p", bytes: 300_000 });
  stream.read();
  stream.ledger.load(new Map([["p", [5, 100_000]]]));
  stream.ledger.load(new Map([["p", [5, 100_000, 9, 200_000]]]));
  expect(stream.counted("p")).toBe(400_000);
  expect(stream.ledger.send(false)).toEqual([["p", [5, 100_000, 9, 200_000, 9, 100_000]]]);
  // The failed write is repeated, and its bytes still count.
  stream.ledger.sent(false);
  expect(stream.counted("p")).toBe(400_000);
  expect(stream.ledger.send(false)).toBeDefined();
  stream.ledger.sent(true);
  expect(stream.counted("p")).toBe(400_000);
  expect(stream.ledger.send(false)).toBeUndefined();
  stream.ledger.load(new Map([["gone", [0, 500_000]]]));
  expect(stream.counted("gone")).toBe(0);
  expect(stream.counted("p")).toBe(0);
});
