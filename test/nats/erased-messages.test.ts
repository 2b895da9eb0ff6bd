// What a reader learns of erasures: as much as it needs, and nothing of another stream's.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { ErasedMessages } from "../../src/nats/erased-messages.ts";
import { erasedSubjects } from "../../src/nats/rewritten.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";

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

test("it knows what was erased from this stream, and asks anew for what it has passed", async () => {
  const erased = new ErasedMessages(manager, { stream, created });
  await erased.learn(1);
  expect(erased.firstOf(4)).toBe(4);

  await new Kvm(connection).create("penstock_erasures", { history: 1 });
  await note([1, 10, 2, 0, 3, 11, 7, 12]);
  await note([5, 13], "2025-01-01T00:00:00Z");
  await erased.learn(1);
  expect([erased.firstOf(4), erased.firstOf(6), erased.firstOf(8)]).toEqual([1, 6, 7]);
  expect(erased.between(2, 100)).toEqual([2, 3, 7]);
  expect([erased.placeOf(2), erased.placeOf(3), erased.placeOf(5)]).toEqual([0, 11, undefined]);

  // One that was written anew once more.
  await note([3, 14, 11, 0]);
  await erased.learn(1);
  expect([erased.placeOf(3), erased.placeOf(11)]).toEqual([14, 0]);

  // So many that those which are passed are no longer held.
  const many = Array.from({ length: 12_000 }, (_, at) => 1_000 + at);
  for (let at = 0; at < many.length; at += 2_000)
    await note(many.slice(at, at + 2_000).flatMap((one) => [one, 0]));
  await erased.learn(500);
  expect([erased.has(7), erased.between(900, 20_000).length]).toEqual([false, 12_000]);
  await erased.learn(1);
  expect([erased.has(7), erased.firstOf(13_000)]).toEqual([true, 1_000]);
});
