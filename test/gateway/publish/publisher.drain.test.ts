import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("draining the publisher", () => {
  test("refuses new events and waits until earlier events are stored", async () => {
    const rig = await startRig(server);
    const lines = Array.from({ length: 40 }, (_, number) => `${number}`);
    const settled: string[] = [];
    const sends = lines.map(async (line) => {
      settled.push(
        (await rig.send("historical", line, { project: `p${Number(line) % 7}` })).outcome,
      );
    });
    const drained = rig.publisher.drain(performance.now() + 5_000);
    expect(rig.publisher.refusal()).toBe("draining");
    await drained;
    await Promise.all(sends);
    expect(settled).toEqual(lines.map(() => "stored"));
    expect(linesOf(await rig.stored("historical")).sort()).toEqual([...lines].sort());
    await rig.close();
  });

  test("gives every frame an outcome at its deadline", async () => {
    const rig = await startRig(server);
    expect(await rig.send("live", "before")).toEqual(stored);
    server.freeze();
    const sent = rig.send("live", "sent");
    await nextTurn();
    const gathered = rig.send("live", "gathered");
    await rig.publisher.drain(performance.now() + 200);
    expect(await sent).toEqual({ outcome: "unknown", code: "timeout" });
    expect(await gathered).toEqual({ outcome: "refused", code: "draining" });
    server.thaw();
    await rig.close();
  });
});
