import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, projectOf, requestWaiter, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const frameBytesMax = 10_000;

describe("a frame", () => {
  test("is followed by another frame when it is full", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax } });
    const lines = Array.from({ length: 30 }, (_, number) => `${number}:${"x".repeat(900)}`);
    const outcomes = await Promise.all(lines.map((line) => rig.send("live", line)));
    expect(outcomes).toEqual(lines.map(() => stored));

    const frames = await rig.stored("live");
    expect(linesOf(frames)).toEqual(lines);
    expect(frames.map((frame) => frame.lines.length)).toEqual([11, 11, 8]);
    await rig.close();
  });

  test("keeps the events of one request together", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax } });
    const project = projectOf("alpha");
    const before = rig.send("live", "0".repeat(4_999));
    const outcome = new Promise((resolve) => {
      for (const digit of ["1", "2"]) {
        const frame = rig.publisher.sharedFrame("live", project, 4_000);
        frame.commit(
          frame.length + frame.buffer.write(`${digit.repeat(3_999)}\n`, frame.length),
          1,
        );
      }
      const frame = rig.publisher.sharedFrame("live", project, 1);
      rig.publisher.join(frame, requestWaiter(resolve), performance.now() + 5_000);
    });

    expect(await Promise.all([before, outcome])).toEqual([stored, "stored"]);
    const frames = await rig.stored("live");
    expect(frames.map(({ lines }) => lines.map((line) => line[0]))).toEqual([["0"], ["1", "2"]]);
    await rig.close();
  });

  test("grows with its events", async () => {
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
