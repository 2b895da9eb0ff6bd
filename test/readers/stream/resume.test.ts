import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectsWords } from "../../../src/readers/effects/writer/applier.ts";
import {
  reportedTo,
  resume,
  type StreamPosition,
  trailReportedTo,
  trailWith,
} from "../../../src/readers/stream/resume.ts";
import type { AskedStream, StoredMessage } from "../../../src/readers/stream/stored-stream.ts";

interface Held {
  readonly created?: string;
  readonly from?: number;
  readonly ids: readonly string[];
  readonly deleted?: readonly number[];
  readonly shared?: number;
  readonly laterMs?: number;
}

/**
 * A stream whose messages have these ids, from sequence `from` on, one per second. The messages
 * after the first `shared` messages are stored `laterMs` later.
 */
function stream({ created = "monday", from = 1, ids, deleted = [], ...rest }: Held) {
  const { shared = Number.POSITIVE_INFINITY, laterMs = 0 } = rest;
  const at = (sequence: number): StoredMessage | undefined => {
    const messageId = deleted.includes(sequence) ? undefined : ids[sequence - from];
    return messageId === undefined
      ? undefined
      : { sequence, messageId, storedAtMs: sequence * 1_000 + (sequence > shared ? laterMs : 0) };
  };
  const lastSequence = from + ids.length - 1;
  const asked: AskedStream = {
    state: async () => ({ created, firstSequence: from, lastSequence, beginsAt: 1 }),
    message: async (sequence) => at(sequence),
    messageFrom: async (sequence) => {
      for (let next = sequence; next <= lastSequence; next++) if (at(next)) return at(next);
      return undefined;
    },
  };
  return asked;
}

function readTo(ids: readonly string[], remembered = 1_000): StreamPosition {
  const all = ids.map((messageId, at) => {
    return { sequence: at + 1, messageId, storedAtMs: (at + 1) * 1_000 };
  });
  return { epoch: 1, created: "monday", sequence: ids.length, trail: all.slice(-remembered) };
}

async function resumed(
  position: StreamPosition | undefined,
  asked: AskedStream,
  acceptExpired = false,
) {
  const { position: next, ...rest } = await resume(position, asked, (await asked.state())!, {
    acceptExpired,
    words: effectsWords,
  });
  const { epoch, sequence } = next;
  const incidents = rest.incidents.map(({ kind, messages }) => [kind, messages]);
  return { epoch, sequence, incidents, fault: rest.fault };
}

const letters = (text: string): string[] => [...text];
const goesOn = { epoch: 1, incidents: [], fault: undefined };

describe("an unchanged stream", () => {
  test("continues after the last message that was read", async () => {
    const found = await resumed(readTo(letters("abc")), stream({ ids: letters("abcde") }));
    expect(found).toEqual({ ...goesOn, sequence: 3 });
  });

  test("continues if exactly the read messages have expired", async () => {
    const asked = stream({ from: 4, ids: letters("de") });
    expect(await resumed(readTo(letters("abc")), asked)).toEqual({ ...goesOn, sequence: 3 });
  });

  test("continues if it is a copy with a different creation date", async () => {
    const asked = stream({ created: "friday", ids: letters("abcd") });
    expect(await resumed(readTo(letters("abc")), asked)).toEqual({ ...goesOn, sequence: 3 });
  });
});

test("a recreated stream is read from its first message", async () => {
  const asked = stream({ created: "friday", ids: letters("xyzuvw"), shared: 0, laterMs: 9_000 });
  expect(await resumed(readTo(letters("abc")), asked)).toEqual({
    epoch: 2,
    sequence: 0,
    fault: undefined,
    incidents: [["stream_made_anew", 0]],
  });
});

test("a stream reports the messages that expired before its first reading", async () => {
  expect(await resumed(undefined, stream({ from: 4, ids: letters("de") }))).toEqual({
    epoch: 1,
    sequence: 3,
    fault: undefined,
    incidents: [["begun_late", 3]],
  });
});

test("reading stops at messages that expired unread", async () => {
  const asked = stream({ from: 6, ids: letters("fg") });
  const incidents = [["expired_unread", 2]];
  expect(await resumed(readTo(letters("abc")), asked)).toEqual({
    epoch: 1,
    sequence: 3,
    incidents,
    fault:
      "2 messages left the stream before they were read, from 4 to 5: `penstock effects run --accept-expired` continues without them",
  });
  expect(await resumed(readTo(letters("abc")), asked, true)).toEqual({
    epoch: 1,
    sequence: 5,
    incidents,
    fault: undefined,
  });
});

test("the restore of an older copy omits and repeats no message", async () => {
  const id = fc.integer({ min: 0, max: 999_999 }).map(String);
  const history = fc.record({
    shared: fc.uniqueArray(id, { maxLength: 60 }),
    lost: fc.uniqueArray(id, { minLength: 1, maxLength: 40 }),
    later: fc.uniqueArray(id, { maxLength: 80 }),
    remembered: fc.integer({ min: 1, max: 120 }),
    deleted: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 10 }),
    isRemade: fc.boolean(),
    // The clock of a restored machine continues from the time of the copy.
    laterMs: fc.constantFrom(0, 100_000),
  });
  const check = async ({ shared, lost, later, remembered, laterMs, ...rest }: Histories) => {
    const before = [...shared.map((one) => `s${one}`), ...lost.map((one) => `l${one}`)];
    const now = [...shared.map((one) => `s${one}`), ...later.map((one) => `n${one}`)];
    const isRemembered = remembered > lost.length;
    const deleted = rest.deleted.filter((one) => !isRemembered && one <= shared.length);
    const created = rest.isRemade ? "friday" : "monday";
    const asked = stream({ created, ids: now, deleted, shared: shared.length, laterMs });
    const position = readTo(before, remembered);
    const found = await resumed(position, asked);
    if (found.fault !== undefined) {
      expect(isRemembered).toBe(false);
      expect(found.incidents.map(([kind]) => kind)).toEqual(["place_unknown"]);
      expect(await resumed(position, asked, true)).toMatchObject({ epoch: 2, sequence: 0 });
      return;
    }
    const kept = isRemembered ? shared.length : 0;
    // A copy of an empty stream cannot be distinguished from a recreated stream.
    const kind = rest.isRemade && kept === 0 ? "stream_made_anew" : "tail_lost";
    expect(found).toMatchObject({ epoch: 2, sequence: kept });
    expect(found.incidents).toEqual([[kind, kind === "tail_lost" ? before.length - kept : 0]]);
  };
  await fc.assert(fc.asyncProperty(history, check), { numRuns: 150 });
});

interface Histories {
  readonly shared: readonly string[];
  readonly lost: readonly string[];
  readonly later: readonly string[];
  readonly remembered: number;
  readonly deleted: readonly number[];
  readonly isRemade: boolean;
  readonly laterMs: number;
}

describe("a stream that lost the newest messages that were read", () => {
  // The trail has the last two of the messages a to f. The copy had a and b.
  const position = readTo(letters("abcdef"), 2);
  const isCopy =
    "the stream was read up to 6, but has none of the newest read messages: it is an older copy or another stream, and it is unknown whether";
  const way = "`penstock effects run --accept-expired` continues from message";
  const counts = "usage and spikes count";

  // The messages u and v count as unread only if their time is later than the time of f.
  test.each([
    ["monday", 0, 4],
    ["friday", 0, 4],
    ["monday", 9_000, 2],
  ])(
    "stops if it was created on %s with messages %d ms later",
    async (created, laterMs, countedTo) => {
      const asked = stream({ created, ids: letters("abuv"), shared: 2, laterMs });
      const incidents = [["place_unknown", 4]];
      expect(await resumed(position, asked)).toEqual({
        epoch: 1,
        sequence: 6,
        incidents,
        fault: `${isCopy} its 4 messages from 1 to 4 were read: ${way} 1; ${counts} only the messages after ${countedTo}, because older messages may have been counted`,
      });
      const state = (await asked.state())!;
      const accepted = await resume(position, asked, state, { acceptExpired: true });
      expect(accepted.incidents[0]).toMatchObject({ epoch: 2, sequence: countedTo });
      expect(await resumed(position, asked, true)).toEqual({
        epoch: 2,
        sequence: 0,
        incidents: [["copy_accepted", 4]],
        fault: undefined,
      });
    },
  );

  test("stops if only some of its messages differ from the read messages", async () => {
    const asked = stream({ ids: letters("abuvwxyz"), shared: 2 });
    expect((await resumed(position, asked)).incidents).toEqual([["place_unknown", 4]]);
    const recreated = stream({ created: "friday", ids: letters("uvwxyz"), shared: 0 });
    expect(await resumed(readTo(letters("abcdef")), recreated)).toEqual({
      epoch: 2,
      sequence: 0,
      fault: undefined,
      incidents: [["stream_made_anew", 0]],
    });
  });

  test("stops if messages that may not have been read have expired", async () => {
    const asked = stream({ from: 4, ids: letters("v"), shared: 0, laterMs: 9_000 });
    expect(await resumed(position, asked)).toEqual({
      epoch: 1,
      sequence: 6,
      incidents: [["place_unknown", 3]],
      fault: `${isCopy} the 3 that have left it were read: ${way} 4; ${counts} all of these messages`,
    });
  });
});

describe("a stream that was created before the last message that was read", () => {
  // The read messages were stored in the first minutes of 1970.
  const position = {
    ...readTo(Array.from({ length: 200 }, (_, n) => `a${n}`)),
    created: "2026-01-02",
  };
  const made = (time: string) => `1970-01-01T${time}.123456789Z`;
  const is =
    "it was created at 1970-01-01T00:01:00.123456789Z, before the last of these messages was stored, so it is an older copy or a stream of another NATS";

  test.each([
    ["only older messages", { ids: letters("xyz") }],
    ["only newer messages", { ids: letters("xyz"), shared: 0, laterMs: 900_000 }],
    ["no messages", { ids: [] }],
  ])("stops with %s until an operator accepts it", async (_, held) => {
    const asked = stream({ ...held, created: made("00:01:00") });
    const stopped = await resumed(position, asked);
    expect(stopped).toMatchObject({ epoch: 1, sequence: 200, incidents: [["place_unknown", 0]] });
    expect(stopped.fault).toContain(`${is}: \`penstock effects run --accept-expired\` continues`);
    expect(await resumed(position, asked, true)).toMatchObject({
      epoch: 2,
      sequence: 0,
      incidents: [["copy_accepted", 0]],
      fault: undefined,
    });
  });

  test.each([
    ["a moment before that message, as clocks may differ", made("00:02:30")],
    ["after that message", made("00:04:00")],
  ])("is read as recreated if it was created %s", async (_, created) => {
    expect(await resumed(position, stream({ created, ids: letters("xyz") }))).toMatchObject({
      epoch: 2,
      sequence: 0,
      incidents: [["stream_made_anew", 0]],
      fault: undefined,
    });
  });

  test("continues if it has a message that was read", async () => {
    const ids = Array.from({ length: 203 }, (_, n) => `a${n}`);
    const asked = stream({ created: made("00:01:00"), ids });
    expect(await resumed(position, asked)).toEqual({ ...goesOn, sequence: 200 });
  });
});

const entry = (sequence: number) => ({ sequence, messageId: `m${sequence}`, storedAtMs: sequence });
const empty: AskedStream = {
  state: async () => undefined,
  message: async () => undefined,
  messageFrom: async () => undefined,
};

test("reported messages are remembered until the position has passed them", () => {
  const before = [entry(1), entry(2)];
  let trail = [...trailReportedTo(before, 8)];
  expect(reportedTo({ sequence: 2, trail: before })).toBe(0);
  for (const sequence of [4, 6]) {
    trail = trailWith(trail, entry(sequence));
    expect([reportedTo({ sequence, trail }), trail.length]).toEqual([8, 3]);
  }
  trail = trailWith(trail, entry(9));
  expect(reportedTo({ sequence: 9, trail })).toBe(0);
  expect(trail.map(({ sequence }) => sequence)).toEqual([1, 2, 8, 9]);
});

test("messages that expired unread are reported only once", async () => {
  const place = { epoch: 1, created: "monday", sequence: 4, trail: trailReportedTo([], 8) };
  const state = { created: "monday", firstSequence: 12, lastSequence: 20, beginsAt: 1 };
  const { incidents } = await resume(place, empty, state, { acceptExpired: false });
  expect(incidents).toMatchObject([{ kind: "expired_unread", sequence: 8, messages: 3 }]);
});
