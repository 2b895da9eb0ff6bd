// The newer protocol (v1) in the intake: outcomes of frames become results of the events in them, whichever frame is heard of first, for
// batches of any length, and long ones keep nobody waiting.

import { randomFillSync, randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Problem } from "../../src/errors.ts";
import { createRecordWriter } from "../../src/events/record.ts";
import { createUuidSource } from "../../src/events/uuid.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { UuidList } from "../../src/intake/uuid-list.ts";
import { createNativeScanner } from "../../src/scan/native.ts";
import type { Exchange, FrameOutcome, FrameSink, FrameWaiter, Publisher } from "../../src/types.ts";

interface Submitted {
  readonly messageId: string;
  readonly uuids: string[];
  settle(outcome: FrameOutcome): void;
}

interface Given {
  readonly results?: Record<string, { result: string; details?: string }>;
  readonly hasRetry?: boolean;
  readonly problem?: Problem;
}

/** An intake whose frames the test settles, in the order it likes. */
function intakeOnFrames() {
  const frames: Submitted[] = [];
  const given = { stored: 0, dropped: 0, unknown: 0, givenBack: 0 };
  const meter = {
    ...{
      admit: () => 0,
      takesExpansion: () => true,
      exceeds: () => undefined,
      limitHit: () => ({ what: "events" as const, perSecond: 1 }),
    },
    giveBack: () => void given.givenBack++,
    countStored(events: number) {
      given.stored += events;
    },
    countUnknown(events: number) {
      given.unknown += events;
    },
    countDropped(events: number) {
      given.dropped += events;
    },
  };
  const project = { id: "a", name: "a", keys: ["key_a"], enabled: true, meter };
  const publisher: Publisher = {
    ...{ frameBytesMax: 524_288, recordBytesMaxOf: () => 4_194_304, refusalOf: () => undefined },
    ...{ refusal: () => undefined, discard: () => {}, join: () => expect.unreachable("no shared frames") },
    sharedFrame: () => expect.unreachable("no shared frames"),
    ownFrame: (_lane, _project, bytes) => ({ buffer: Buffer.alloc(bytes), length: 0, events: 0 }),
    submit(sink: FrameSink, messageId: string, waiter: FrameWaiter) {
      const lines = sink.buffer.toString("utf8", 0, sink.length).trimEnd().split("\n");
      const uuids = lines.map((line) => (JSON.parse(line) as { uuid: string }).uuid);
      const code = (outcome: FrameOutcome) => (outcome === "refused" ? ("store_full" as const) : undefined);
      const settle = (outcome: FrameOutcome) => waiter.frameSettled(outcome, code(outcome), sink.events, sink.length);
      frames.push({ messageId, uuids, settle });
    },
  };
  const intake = createIntake({
    createScanner: createNativeScanner,
    projects: { byKey: (key) => (key === "key_a" ? project : undefined), refusalOf: () => undefined },
    publisher,
    records: createRecordWriter({ uuids: createUuidSource({ randomFill: (bytes) => randomFillSync(bytes) }) }),
    metrics: { events() {}, warnings() {}, slowPathItems() {}, distinctIdsCut() {} },
    nowMs: () => performance.now(),
    nextTurn: setImmediate,
  });

  function send(batch: readonly unknown[], requestId: string = randomUUID()) {
    const answer = Promise.withResolvers<Given>();
    const v1 = { apiKey: "key_a", requestId, attempt: "", requestTimestamp: "", sdkInfo: "sdk/1" };
    const exchange: Exchange = {
      ...({
        route: "v1",
        receivedAtMs: Date.now(),
        clientAddress: "",
        bytesArrived: 1e9,
        projectId: "",
        library: "",
        path: "",
        client: "",
      } as const),
      ...{ sentAtMs: Number.NaN, isEngage: false, hint: undefined, deadlineMs: performance.now() + 30_000 },
      v1: {
        ...v1,
        answerResults: (text, hasRetry) =>
          answer.resolve({ ...(JSON.parse(text.toString()) as Pick<Given, "results">), hasRetry }),
      },
      answerStored: () => answer.reject(new Error("answered as the older protocol is")),
      answerProblem: (problem) => answer.resolve({ problem }),
    };
    const body = Buffer.from(JSON.stringify({ created_at: "2026-01-01T00:00:00Z", batch }));
    const work = intake(exchange, body) ?? Promise.resolve();
    return { answer: answer.promise, work };
  }

  return { frames, given, send };
}

function event(textBytes = 0) {
  const properties = { text: "x".repeat(textBytes) };
  return { event: "e", uuid: randomUUID(), distinct_id: "u", timestamp: "2026-01-01T00:00:00Z", properties };
}

const dropped = () => ({ ...event(), event: "" });

/** Takes the frames as they come until the intake has placed all, and settles them from the last to the first. */
async function settleAll(frames: Submitted[], work: Promise<void>, outcomeOf: (at: number) => FrameOutcome) {
  let isDone = false;
  void work.then(() => {
    isDone = true;
  });
  let settled = 0;
  for (let idle = 0; !isDone || settled < frames.length; ) {
    const before = frames.length;
    await setImmediate();
    idle = frames.length === before ? idle + 1 : 0;
    if (idle < 20 && !isDone) continue;
    const from = settled;
    settled = frames.length;
    for (let at = settled - 1; at >= from; at--) frames[at]?.settle(outcomeOf(at));
    idle = 0;
  }
}

test("each event has the outcome of its frame, whichever is heard of first", async () => {
  const { frames, given, send } = intakeOnFrames();
  const batch = Array.from({ length: 30 }, (_, index) => (index % 10 === 3 ? dropped() : event(60_000)));
  const { answer, work } = send(batch);
  const all = ["stored", "refused", "duplicate", "unknown"] as const;
  await settleAll(frames, work, (at) => all[at % all.length] ?? "stored");
  const { results, hasRetry } = await answer;
  const said = new Map<string, unknown>();
  const retries = {
    refused: { result: "retry", details: "store_full" },
    unknown: { result: "retry", details: "timeout" },
  };
  for (const [at, { uuids }] of frames.entries()) {
    const outcome = all[at % all.length] ?? "stored";
    for (const uuid of uuids) said.set(uuid, outcome in retries ? retries[outcome as "refused"] : { result: "ok" });
  }
  // Once a frame is refused the rest is not placed.
  const expected = batch.map(({ uuid, event: name }) =>
    name === "" && results?.[uuid]?.result === "drop"
      ? { result: "drop", details: "no_event" }
      : (said.get(uuid) ?? { result: "retry", details: "unavailable" }),
  );
  expect(Object.values(results ?? {})).toEqual(expected);
  expect(Object.keys(results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
  expect(hasRetry).toBe(true);
  expect(said.size).toBeGreaterThan(8);
  expect(given.givenBack).toBe(1);
});

test("where nothing is stored the request is refused, whatever was dropped beside", async () => {
  const { frames, send } = intakeOnFrames();
  for (const [outcome, code] of [
    ["refused", "store_full"],
    ["unknown", "timeout"],
  ] as const) {
    const { answer } = send([event(), dropped()]);
    frames.at(-1)?.settle(outcome);
    expect((await answer).problem?.code).toBe(code);
  }
});

test("what is dropped counts once it is told, also beside what is to be sent again", async () => {
  const { frames, given, send } = intakeOnFrames();
  const { answer, work } = send([dropped(), ...Array.from({ length: 10 }, () => event(60_000))]);
  await settleAll(frames, work, (at) => (at === 0 ? "stored" : "refused"));
  await answer;
  expect(given).toMatchObject({ dropped: 1, stored: frames[0]?.uuids.length });
});

test("ids of frames are those of the events in them: a part that is sent again is known, other events are not", async () => {
  const { frames, send } = intakeOnFrames();
  const batch = Array.from({ length: 16 }, () => event(60_000));
  const requestId = randomUUID();
  const whole = send(batch, requestId);
  await settleAll(frames, whole.work, () => "stored");
  const [first, second] = frames;
  const from = first?.uuids.length ?? 0;
  const part = send(batch.slice(from), requestId);
  const before = frames.length;
  await settleAll(frames.slice(before), Promise.resolve(), () => "stored");
  await settleAll(frames, part.work, () => "duplicate");
  expect(frames[before]?.messageId).toBe(second?.messageId);
  const other = send(batch, randomUUID());
  const afterPart = frames.length;
  await settleAll(frames, other.work, () => "stored");
  expect(frames.slice(afterPart).map(({ messageId }) => messageId)).not.toContain(first?.messageId);
  expect(new Set(frames.slice(0, before).map(({ messageId }) => messageId)).size).toBe(before);
});

test("a batch longer than the table is answered whole, and a uuid that comes twice is found at its end", async () => {
  const { frames, send } = intakeOnFrames();
  const batch = Array.from({ length: 40_000 }, () => event());
  const { answer, work } = send(batch);
  await settleAll(frames, work, () => "stored");
  const { results, hasRetry } = await answer;
  expect(Object.keys(results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
  expect(Object.values(results ?? {}).every(({ result }) => result === "ok")).toBe(true);
  expect(hasRetry).toBe(false);
  expect(frames.flatMap(({ uuids }) => uuids)).toEqual(batch.map(({ uuid }) => uuid));

  const before = frames.length;
  const twice = await send([...batch, { ...event(), uuid: batch[17]?.uuid }]).answer;
  expect(twice.problem?.detail).toBe("batch[40000] has the same uuid as batch[17]");
  expect(frames).toHaveLength(before);
});

test("uuids are told apart by every digit, and come back as they were", () => {
  const uuids = Array.from({ length: 3_000 }, () => randomUUID() as string);
  const near = Array.from({ length: 36 }, (_, at) => {
    const digits = [..."00000000-0000-0000-0000-000000000000"];
    if (digits[at] !== "-") digits[at] = "f";
    return digits.join("");
  });
  const all = [...new Set([...uuids, ...near, "ffffffff-ffff-ffff-ffff-ffffffffffff"])];
  const list = new UuidList(all.length + 1);
  for (const uuid of all) expect(list.add(Buffer.from(`"${uuid.toUpperCase()}"`), 1)).toBe(-1);
  expect(list.length).toBe(all.length);
  const target = Buffer.alloc(36);
  for (const [index, uuid] of all.entries()) {
    list.write(target, 0, index);
    expect(target.toString()).toBe(uuid);
  }
  expect(list.add(Buffer.from(all[2_000] ?? ""), 0)).toBe(2_000);
});
