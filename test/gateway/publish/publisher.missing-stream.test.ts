import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("a frame for a missing stream is refused as unavailable", async () => {
  const rig = await startRig(server);
  const name = `${rig.settings.subjectPrefix}_HISTORICAL_0`.toUpperCase();
  const jsm = await jetstreamManager(rig.link.connection);
  await jsm.streams.delete(name);
  const lost = rig.send("historical", "old", { withinMs: 500 });
  const startedMs = performance.now();
  expect(await rig.send("live", "new")).toEqual(stored);
  expect(performance.now() - startedMs).toBeLessThan(400);
  expect(await lost).toEqual({ outcome: "refused", code: "unavailable" });
  expect(new Set(rig.heard.failures)).toEqual(new Set(["no_responders"]));
  expect(rig.heard.retries).toBeGreaterThan(1);
  expect(await rig.streams.check()).toEqual([`stream ${name} is missing`]);

  const waiting = rig.send("historical", "patient");
  await rig.streams.ensure();
  expect(await waiting).toEqual(stored);
  expect(linesOf(await rig.stored("historical"))).toEqual(["patient"]);
  expect(linesOf(await rig.stored("live"))).toEqual(["new"]);
  expect(await rig.streams.check()).toEqual([]);
  await rig.close();
});
