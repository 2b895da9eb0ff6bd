import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { projectOf, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("the frame of a large request", () => {
  test("is stored once however often its id is submitted", async () => {
    const rig = await startRig(server);
    const messageId = "body-hash-0-1-2";
    const outcomes = await Promise.all([
      rig.send("historical", "before"),
      rig.sendOwn("historical", ["own 0", "own 1"], { messageId }),
      rig.send("historical", "after"),
      rig.sendOwn("historical", ["own 0", "own 1"], { messageId }),
    ]);
    expect(outcomes).toEqual([stored, stored, stored, { outcome: "duplicate", code: undefined }]);
    expect(rig.heard.duplicates).toBe(1);
    const frames = await rig.stored("historical");
    expect(frames.map((frame) => frame.lines)).toEqual([["before"], ["own 0", "own 1"], ["after"]]);
    expect(frames[1]?.messageId).toBe(messageId);
    await rig.close();
  });

  test("does not delay a live event that is submitted after it", async () => {
    const rig = await startRig(server);
    const own = Array.from({ length: 30 }, (_, index) =>
      rig.sendOwn("live", [`own ${index}`], { messageId: `large-${index}` }),
    );
    const outcomes = await Promise.all([...own, rig.send("live", "single")]);
    expect(outcomes).toEqual(outcomes.map(() => stored));
    const lines = (await rig.stored("live")).flatMap((frame) => frame.lines);
    expect(lines.indexOf("single")).toBeLessThan(5);
    expect(lines.filter((line) => line !== "single")).toEqual(
      Array.from({ length: 30 }, (_, index) => `own ${index}`),
    );
    await rig.close();
  });

  test("leaves no trace if it is returned unused", async () => {
    const rig = await startRig(server);
    rig.publisher.discard(rig.publisher.ownFrame("live", projectOf("alpha"), 100_000));
    expect(await rig.send("live", "only")).toEqual(stored);
    expect((await rig.stored("live")).map((frame) => frame.lines)).toEqual([["only"]]);
    await rig.close();
  });
});
