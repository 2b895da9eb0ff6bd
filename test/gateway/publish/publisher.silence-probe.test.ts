import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { refuseSilent } from "../../../src/platform/nats/readiness.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("a silent stream admits one request with events as its probe", async () => {
  const rig = await startRig(server);
  const silence = { code: "unavailable", detail: "silent" } as const;
  refuseSilent(rig.streams.states.of("live", 0), silence, performance.now());
  const refusal = () => rig.publisher.refusalOf("live", "alpha");
  expect(refusal()).toEqual(silence);
  await expect.poll(refusal, { timeout: 30_000, interval: 5 }).toBe(undefined);
  for (let asked = 0; asked < 1_000; asked++) expect(refusal()).toBe(undefined);

  server.freeze();
  const probe = rig.send("live", "probe");
  expect(refusal()).toEqual(silence);
  await delay(10);
  expect(refusal()).toEqual(silence);
  server.thaw();
  expect(await probe).toEqual(stored);
  expect(refusal()).toBe(undefined);
  await rig.close();
});
