import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("a project with a large request has at most two live frames in flight", async () => {
  const rig = await startRig(server);
  server.freeze();
  const sends = [rig.sendOwn("live", ["large"], { messageId: "large-1" })];
  await nextTurn();
  for (const [index, line] of ["first", "second", "third"].entries()) {
    sends.push(rig.send("live", line));
    await nextTurn();
    expect(rig.heard.framesSent).toBe(Math.min(index + 2, 3));
  }
  server.thaw();

  expect(await Promise.all(sends)).toEqual([stored, stored, stored, stored]);
  expect((await rig.stored("live")).map((frame) => frame.lines)).toEqual([
    ["large"],
    ["first"],
    ["second"],
    ["third"],
  ]);
  await rig.close();
});
