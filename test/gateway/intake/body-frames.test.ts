import { expect, test } from "vitest";
import { IntakeKit } from "./intake-kit.ts";

const large = { name: "large", project: "a", events: 4_000 };

test("the intake reuses the message ids of a failed body for two minutes", async () => {
  let nowMs = 0;
  const kit = new IntakeKit();
  kit.monotonicMs = () => nowMs;
  kit.outcome = () => "refused";
  const firstIds: string[] = [];
  for (nowMs of [0, 100_000, 200_000, 320_001]) {
    const from = kit.messageIds.length;
    await kit.send(large).work;
    firstIds.push(kit.messageIds[from]!);
  }
  expect(firstIds.slice(0, 3)).toEqual([firstIds[0], firstIds[0], firstIds[0]]);
  expect(firstIds[3]).not.toBe(firstIds[0]);
});

test("the intake gives an equal body from another address different message ids", async () => {
  const kit = new IntakeKit();
  kit.outcome = () => "refused";
  const firstIds: string[] = [];
  for (const senderAddress of ["10.0.0.1", "10.0.0.2", "10.0.0.1"]) {
    const from = kit.messageIds.length;
    await kit.send(large, { senderAddress }).work;
    firstIds.push(kit.messageIds[from]!);
  }
  expect(firstIds[1]).not.toBe(firstIds[0]);
  expect(firstIds[2]).toBe(firstIds[0]);
});
