import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ token: "secret" });

test("frames in flight are stored if a killed server returns in time", async () => {
  const rig = await startRig(server);
  expect(await rig.send("live", "before")).toEqual(stored);
  server.freeze();
  const sends = [rig.send("live", "in flight")];
  await nextTurn();
  sends.push(rig.send("live", "gathered"));
  await server.kill();
  await vi.waitFor(() => expect(rig.publisher.refusal()).toBe("unavailable"), 5_000);
  expect(rig.link.connected).toBe(false);
  expect(await rig.streams.check()).toEqual(["NATS is not connected"]);
  await server.restart();

  for (const { outcome } of await Promise.all(sends))
    expect(outcome).toMatch(/^(stored|duplicate)$/);
  expect(linesOf(await rig.stored("live"))).toEqual(["before", "in flight", "gathered"]);
  expect(rig.publisher.refusal()).toBeUndefined();
  expect(rig.heard.failures).toContain("disconnected");
  await rig.close();
});
