import { rmSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("the gateway creates its streams again on an emptied disk", async () => {
  const rig = await startRig(server);
  expect(await rig.send("live", "before")).toEqual(stored);
  await server.kill();
  rmSync(server.storeDir, { recursive: true });
  const waiting = rig.send("live", "after");
  await server.restart();
  // The deleted stream had also assigned this sequence, so the outcome is unknown until the gateway
  // has read the new stream.
  expect(await waiting).toEqual({ outcome: "unknown", code: "unavailable" });
  await vi.waitFor(() => expect(rig.publisher.refusalOf("live", "alpha")).toBeUndefined());
  expect(await rig.send("live", "later")).toEqual(stored);
  expect(linesOf(await rig.stored("live"))).toEqual(["after", "later"]);
  await rig.close();
});
