import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("events queued while the window is full", () => {
  test("are sent together when their project's frame is acknowledged", async () => {
    const rig = await startRig(server);
    server.freeze();
    const sends = [rig.send("live", "first")];
    await nextTurn();
    for (const line of ["second", "third", "fourth"]) {
      sends.push(rig.send("live", line));
      await nextTurn();
    }
    expect(rig.heard.framesSent).toBe(1);
    expect(rig.publisher.framesUnacked).toBe(1);
    server.thaw();

    expect(await Promise.all(sends)).toEqual([stored, stored, stored, stored]);
    expect((await rig.stored("live")).map((frame) => frame.lines)).toEqual([
      ["first"],
      ["second", "third", "fourth"],
    ]);
    await rig.close();
  });

  test("are sent in turn, one project after another", async () => {
    const rig = await startRig(server, { framesUnackedMax: 2 });
    server.freeze();
    const projects = ["a", "b", "c", "d"];
    const sends = projects.map((project) => rig.send("live", `${project}1`, { project }));
    await nextTurn();
    sends.push(...projects.map((project) => rig.send("live", `${project}2`, { project })));
    await nextTurn();
    expect(rig.publisher.framesUnacked).toBe(2);
    server.thaw();

    expect(await Promise.all(sends)).toEqual(sends.map(() => stored));
    const lines = linesOf(await rig.stored("live"));
    expect([...lines].sort()).toEqual(["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"]);
    expect(lines.indexOf("c1")).toBeLessThan(lines.indexOf("b2"));
    expect(lines.indexOf("d1")).toBeLessThan(lines.indexOf("b2"));
    await rig.close();
  });
});
