import type { JsMsg } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { HeldFrames } from "../../../src/readers/consumer/held-frames.ts";

function message(seq: number): JsMsg {
  return { seq, data: new Uint8Array(10) } as unknown as JsMsg;
}

test("held frames are incomplete until all frames of an earlier consumer arrive", () => {
  const hand = new HeldFrames();
  hand.expect(2, 7);
  expect(hand.isComplete).toBe(false);
  hand.add(message(8));
  hand.add(message(5));
  expect(hand.isComplete).toBe(false);
  hand.add(message(6));
  expect(hand.isComplete).toBe(true);
  expect(hand.lowest).toBe(5);
});

test("a frame is acknowledged only once", () => {
  const hand = new HeldFrames();
  const [first, second] = [hand.add(message(1)), hand.add(message(2))];
  expect([hand.ack(second), hand.ack(second), hand.isAcked(2)]).toEqual([true, false, true]);
  expect([hand.size, hand.bytes, hand.lowest]).toEqual([1, 10, 1]);
  hand.forgetAcked(1);
  expect(hand.isAcked(2)).toBe(true);
  hand.ack(first);
  hand.forgetAcked(2);
  expect([hand.isAcked(2), hand.size, hand.bytes]).toEqual([false, 0, 0]);
});

test("frames that are no longer in the stream cannot be acknowledged", () => {
  const hand = new HeldFrames();
  const frames = [1, 2, 3].map((sequence) => hand.add(message(sequence)));
  hand.ack(frames[1]!);
  hand.cutBack(1);
  expect(frames.map(({ isOrphan }) => isOrphan)).toEqual([false, false, true]);
  expect([hand.ack(frames[2]!), hand.isAcked(2), hand.size]).toEqual([false, false, 1]);
});

test("frames are held in the order of storage, including lost frames", () => {
  const hand = new HeldFrames();
  const add = (...sequences: number[]) => {
    for (const sequence of sequences) hand.add(message(sequence));
  };
  const order = () => hand.allInOrder.map(({ sequence }) => sequence);
  add(5, 6, 7);
  hand.cutBack(5);
  add(6, 7);
  expect(order()).toEqual([5, 6, 7, 6, 7]);
  hand.cutBack(0);
  add(1);
  expect(order()).toEqual([5, 6, 7, 6, 7, 1]);
  const isOrphan = hand.allInOrder.map((held) => held.isOrphan);
  expect(isOrphan).toEqual([true, true, true, true, true, false]);
});

test("the lowest sequence of 300,000 held frames is found", () => {
  const hand = new HeldFrames();
  for (let seq = 300_000; seq > 0; seq--) hand.add(message(seq));
  expect(hand.lowest).toBe(1);
});
