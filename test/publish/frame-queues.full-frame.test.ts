import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../testkit/for-file.ts";
import { linesOf, projectOf, startRig, stored } from "../../testkit/publisher-rig.ts";

const server = await natsServerForFile();

const frameBytesMax = 10_000;

describe("a full frame makes way for another", () => {
  test("a full frame makes way for another, and both are stored in order", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax } });
    const lines = Array.from({ length: 30 }, (_, number) => `${number}:${"x".repeat(900)}`);
    const outcomes = await Promise.all(lines.map((line) => rig.send("live", line)));
    expect(outcomes).toEqual(lines.map(() => stored));

    const frames = await rig.stored("live");
    expect(linesOf(frames)).toEqual(lines);
    expect(frames.map((frame) => frame.lines.length)).toEqual([11, 11, 8]);
    await rig.close();
  });

  test("a frame may be joined after a later line of the same turn made it full", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax } });
    const project = projectOf("alpha");
    const outcomes: string[] = [];
    const waiter = { frameSettled: (outcome: string): void => void outcomes.push(outcome) };
    const deadlineMs = performance.now() + 5_000;

    const first = rig.publisher.sharedFrame("live", project, 8_000);
    first.commit(first.length + first.buffer.write(`${"1".repeat(7_999)}\n`, first.length), 1);
    const second = rig.publisher.sharedFrame("live", project, 8_000);
    expect(second).not.toBe(first);
    second.commit(second.length + second.buffer.write(`${"2".repeat(7_999)}\n`, second.length), 1);
    rig.publisher.join(first, waiter, deadlineMs);
    rig.publisher.join(second, waiter, deadlineMs);
    await rig.publisher.drain(deadlineMs);

    expect(outcomes).toEqual(["stored", "stored"]);
    expect(linesOf(await rig.stored("live")).map((line) => line[0])).toEqual(["1", "2"]);
    await rig.close();
  });

  test("a frame grows with its lines and keeps them", async () => {
    const rig = await startRig(server);
    const lines = Array.from(
      { length: 120 },
      (_, number) => `${number}:${"y".repeat(number * 60)}`,
    );
    const outcomes = await Promise.all(lines.map((line) => rig.send("live", line)));
    expect(outcomes).toEqual(lines.map(() => stored));
    const frames = await rig.stored("live");
    expect(frames).toHaveLength(1);
    expect(linesOf(frames)).toEqual(lines);
    await rig.close();
  });
});
