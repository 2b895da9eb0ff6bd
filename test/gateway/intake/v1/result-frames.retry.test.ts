import { randomInt, randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { FrameOutcome } from "../../../../src/gateway/publish/port.ts";
import {
  dropped,
  event,
  intakeOnFrames,
  type SentHow,
  type Submitted,
  settleAll,
} from "../frames-kit.ts";

class Store {
  readonly uuids: string[] = [];
  readonly #ids = new Set<string>();

  take({ messageId, uuids }: Submitted, isHeard: boolean): FrameOutcome {
    const isKnown = this.#ids.has(messageId);
    this.#ids.add(messageId);
    if (!isKnown) this.uuids.push(...uuids);
    if (!isHeard) return "unknown";
    return isKnown ? "duplicate" : "stored";
  }
}

type Sent = ReturnType<typeof event>;

async function sendUntilStored(
  { frames, send }: ReturnType<typeof intakeOnFrames>,
  store: Store,
  {
    batch,
    isHeard,
    how,
  }: { batch: Sent[]; isHeard: () => boolean; how: (attempt: number) => SentHow },
): Promise<number> {
  const requestId = randomUUID();
  let left = batch;
  for (let attempt = 1; attempt < 100; attempt++) {
    const before = frames.length;
    const { answer, work } = send(left, requestId, how(attempt));
    await settleAll(
      frames,
      work,
      (at) => store.take(frames[at] as Submitted, attempt > 90 || isHeard()),
      before,
    );
    const { results, problem } = await answer;
    if (problem === undefined)
      left = left.filter(({ uuid }) => results?.[uuid]?.result === "retry");
    if (left.length === 0) return attempt;
  }
  return expect.unreachable("it never ended");
}

const storable = (batch: readonly Sent[]) =>
  batch.filter(({ event: name }) => name !== "").map(({ uuid }) => uuid);

describe("a partial retry of a v1 request", () => {
  test("is recognised without the event that was dropped from the first request", async () => {
    const { frames, send } = intakeOnFrames();
    const [a, c] = [event(), event()];
    const requestId = randomUUID();
    send([a, dropped(), c], requestId, { between: ", " });
    send([a, c], requestId, { between: ",\n  " });
    send([dropped(), dropped(), a, dropped(), c, dropped()], requestId);
    expect(new Set(frames.map(({ messageId }) => messageId)).size).toBe(1);
    send([a], requestId);
    send([c, a], requestId);
    send([a, { ...c, distinct_id: "v" }], requestId);
    send([a, c]);
    expect(new Set(frames.map(({ messageId }) => messageId)).size).toBe(5);
  });

  test("of repeated events without uuids needs a request id to be recognised", () => {
    const { frames, send } = intakeOnFrames();
    const nil = { ...event(), uuid: "00000000-0000-0000-0000-000000000000" };
    const requestId = randomUUID();
    for (const batch of [[nil], [nil]]) send(batch, requestId);
    for (const batch of [[nil], [nil], [event(), nil]]) send(batch, "");
    const [first, again, ...others] = frames.map(({ messageId }) => messageId);
    expect(first).not.toBe("");
    expect(again).toBe(first);
    expect(others).toEqual(["", "", ""]);
    const named = event();
    for (const batch of [[named], [named]]) send(batch, "");
    expect(frames.at(-1)!.messageId).not.toBe("");
    expect(frames.at(-1)!.messageId).toBe(frames.at(-2)!.messageId);
  });

  test("stores no event twice after unanswered frames", async () => {
    const intake = intakeOnFrames();
    const rounds = 12;
    let attemptsInAll = 0;
    for (let round = 0; round < rounds; round++) {
      const store = new Store();
      const batch = Array.from({ length: 300 }, (_, index) => {
        const sizes = index % 4 === 0 ? [400, 20_000] : [400, 4_000, 20_000, 100_000];
        const one =
          randomInt(6) === 0 ? dropped() : event(randomInt(sizes[randomInt(sizes.length)] ?? 1));
        return index % 4 === 0 ? { ...one, properties: { $set: one.properties, text: "é" } } : one;
      }) as Sent[];
      const attempts = await sendUntilStored(intake, store, {
        batch,
        isHeard: () => randomInt(3) > 0,
        how: (attempt) => ({
          between: attempt === 1 ? ", " : ",",
          clientAddress: "1".repeat(randomInt(40)),
          requestTimestamp: randomInt(2) === 0 ? "" : new Date().toISOString(),
        }),
      });
      attemptsInAll += attempts;
      expect([...store.uuids].sort()).toEqual(storable(batch).sort());
    }
    expect(attemptsInAll).toBeGreaterThan(rounds);
  });
});
