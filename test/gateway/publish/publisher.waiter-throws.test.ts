import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { projectOf, requestWaiter, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("the publisher", () => {
  test("logs once that the callback of a request throws", async () => {
    const rig = await startRig(server);
    const project = projectOf("alpha");
    for (const line of ["bad 1\n", "bad 2\n"]) {
      const sink = rig.publisher.sharedFrame("live", project, line.length);
      sink.commit(sink.length + sink.buffer.write(line, sink.length), 1);
      const frameSettled = (): void => {
        throw new Error("a bug");
      };
      rig.publisher.join(sink, requestWaiter(frameSettled), performance.now() + 5_000);
    }
    expect(await rig.send("live", "good")).toEqual(stored);
    expect((await rig.stored("live")).map((frame) => frame.lines)).toEqual([
      ["bad 1", "bad 2", "good"],
    ]);
    expect(rig.log.filter((line) => line.includes("outcome of a frame threw"))).toHaveLength(1);
    await rig.close();
  });

  test("reports a bug if a request joins a frame without an event", async () => {
    const rig = await startRig(server);
    const sink = rig.publisher.sharedFrame("live", projectOf("alpha"), 10);
    const waiter = requestWaiter(() => {});
    expect(() => rig.publisher.join(sink, waiter, 0)).toThrow("no line was appended");
    await rig.close();
  });
});
