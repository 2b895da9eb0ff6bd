import { expect, test } from "vitest";
import { DeferredAcks } from "../../../src/readers/consumer/deferred-acks.ts";

function collected() {
  const [acks, sent] = [new DeferredAcks(), [] as number[]];
  return { acks, sent, ack: (id: number) => acks.acknowledge(id, () => sent.push(id)) };
}

test("a frame is acknowledged after the frames with its omitted events", () => {
  const { acks, sent, ack } = collected();
  for (const id of [1, 2]) acks.deliver(id, []);
  acks.deliver(3, [1, 2]);
  ack(3);
  ack(1);
  expect([sent, acks.isDeferred(3), acks.isAwaited(1), acks.isAwaited(2)]).toEqual([
    [1],
    true,
    false,
    true,
  ]);
  ack(2);
  ack(3);
  expect([sent, acks.isDeferred(3)]).toEqual([[1, 2, 3, 3], false]);
});

test("a frame that omits nothing is acknowledged immediately", () => {
  const { acks, sent, ack } = collected();
  acks.deliver(1, []);
  ack(1);
  acks.deliver(2, [1]);
  ack(2);
  ack(3);
  expect(sent).toEqual([1, 2, 3]);
});

test("two frames that omit events of each other are both acknowledged", () => {
  const { acks, sent, ack } = collected();
  acks.deliver(1, []);
  acks.deliver(2, [1]);
  acks.deliver(1, [2]);
  ack(1);
  expect(sent).toEqual([]);
  ack(2);
  expect(sent.sort()).toEqual([1, 2]);
});

test("a frame waits transitively for all frames that block it", () => {
  const { acks, sent, ack } = collected();
  acks.deliver(1, []);
  acks.deliver(2, [1]);
  ack(2);
  acks.deliver(3, []);
  acks.deliver(1, [3]);
  ack(1);
  acks.deliver(4, [1]);
  ack(4);
  expect(sent).toEqual([]);
  ack(3);
  expect(sent.sort()).toEqual([1, 2, 3, 4]);
});

test("a redelivered frame waits only for events omitted at the redelivery", () => {
  const { acks, sent, ack } = collected();
  acks.deliver(1, []);
  acks.deliver(2, [1]);
  ack(2);
  acks.takeBack(2);
  expect([acks.isDeferred(2), acks.isAwaited(1)]).toEqual([false, false]);
  acks.deliver(2, []);
  ack(2);
  ack(1);
  expect(sent).toEqual([2, 1]);
});
