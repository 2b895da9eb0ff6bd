import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, startRig } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("a frame sent again after a lost acknowledgement is stored once", async () => {
  const rig = await startRig(server, { ackTimeoutMs: 200 });
  server.freeze();
  const sends = [rig.send("live", "one"), rig.send("historical", "old one")];
  await nextTurn();
  sends.push(rig.send("live", "two"), rig.send("historical", "old two"));
  await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThanOrEqual(4), 5_000);
  server.thaw();

  for (const { outcome } of await Promise.all(sends))
    expect(outcome).toMatch(/^(stored|duplicate)$/);
  expect((await rig.stored("live")).map((frame) => frame.lines)).toEqual([["one"], ["two"]]);
  expect((await rig.stored("historical")).map((frame) => frame.lines)).toEqual([
    ["old one"],
    ["old two"],
  ]);
  expect(rig.heard.failures).toContain("timeout");
  await rig.close();
});
