import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { ErasedMessages } from "../../../src/platform/nats/erased-messages.ts";
import { erasedSubjects } from "../../../src/platform/nats/rewritten.ts";
import { natsServerForFile } from "../../kit/for-file.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const manager = await jetstreamManager(connection);
const stream = "PENSTOCK_LIVE_0";
const created = "2026-11-23T00:00:00Z";
let entries = 0;

async function note(messages: readonly number[], madeAt = created): Promise<void> {
  const entry = JSON.stringify({ created: madeAt, messages });
  await jetstream(connection).publish(`${erasedSubjects(stream)}erasure.${++entries}`, entry);
}

async function betweenOf(erased: ErasedMessages, from: number, to: number): Promise<number[]> {
  const all: number[] = [];
  for await (const sequence of erased.between(from, to)) all.push(sequence);
  return all;
}

test("a reader gets the erasures of its stream", async () => {
  const erased = new ErasedMessages(manager, { stream, created });
  await erased.learn(1);
  expect(await erased.firstOf(4, 1)).toBe(4);

  await new Kvm(connection).create("penstock_erasures", { history: 1 });
  await note([1, 10, 2, 0, 3, 11, 7, 12]);
  await note([5, 13], "2025-01-01T00:00:00Z");
  await erased.learn(1);
  expect(await erased.firstOf(4, 1)).toBe(1);
  expect(await erased.firstOf(4, 3)).toBe(3);
  expect([await erased.firstOf(6, 1), await erased.firstOf(8, 1)]).toEqual([6, 7]);
  expect(await betweenOf(erased, 2, 100)).toEqual([2, 3, 7]);
  expect(await placesOf(erased, [2, 3, 5, 10])).toEqual([0, 11, undefined, undefined]);

  await note([3, 14, 11, 0]);
  await erased.learn(1);
  expect(await placesOf(erased, [3, 11])).toEqual([14, 0]);

  // With this number of erasures, those before the position are no longer in memory.
  const many = Array.from({ length: 12_000 }, (_, at) => 1_000 + at);
  for (let at = 0; at < many.length; at += 2_000)
    await note(many.slice(at, at + 2_000).flatMap((one) => [one, 0]));
  await erased.learn(500);
  expect((await betweenOf(erased, 900, 20_000)).length).toBe(12_000);
  expect([await erased.replacementOf(7), await erased.firstOf(13_000, 1)]).toEqual([12, 1_000]);
});

test("an unrecorded rewritten copy is a duplicate if another copy exists", async () => {
  const erased = new ErasedMessages(manager, { stream, created });
  await erased.learn(0);
  await manager.streams.add({ name: stream, subjects: ["penstock.live.0.>"] });
  await jetstream(connection).publish("penstock.live.0.shop", "still there");
  expect(await erased.isStray(14, 3)).toBe(false);
  expect(await erased.isStray(11, 3)).toBe(true);
  expect(await erased.isStray(15, 3)).toBe(true);
  await note([20, 21], "2026-11-23T06:00:00Z");
  const another = new ErasedMessages(manager, { stream, created: "2026-11-23T06:00:00Z" });
  expect(await another.isStray(15, 1)).toBe(true);
  expect(await another.isStray(15, 4)).toBe(false);
});

test("a reader uses any number of erasures in little memory", async () => {
  const madeAt = "2026-11-23T12:00:00Z";
  const erased = new ErasedMessages(manager, { stream, created: madeAt });
  const [count, each] = [1_120_000, 70_000];
  const place = (sequence: number) => (sequence % 4 === 0 ? 10_000_000 + sequence : 0);
  for (let at = 0; at < count; at += each) {
    const first = (at < count / 2 ? count / 2 + at : at - count / 2) + 1;
    const some = Array.from({ length: each }, (_, index) => first + index);
    await note(
      some.flatMap((one) => [one, place(one)]),
      madeAt,
    );
  }
  await erased.learn(0);
  let due = 1;
  for await (const sequence of erased.between(1, 5_000_000)) {
    if (sequence !== due) break;
    if (due % 1_000 === 0) expect(await erased.replacementOf(sequence)).toBe(place(sequence));
    due++;
  }
  expect(due).toBe(count + 1);
  expect(await erased.firstOf(count + 1, 1)).toBe(1);
  expect(await erased.isStray(10_000_004, 4)).toBe(false);
  expect(await erased.isStray(10_000_005, 4)).toBe(true);
});

async function placesOf(erased: ErasedMessages, some: readonly number[]) {
  const places: (number | undefined)[] = [];
  for (const one of some) places.push(await erased.replacementOf(one));
  return places;
}
