import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { kill } from "node:process";
import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startRig, stored } from "../../kit/publisher-rig.ts";

const denied = 'deny: ["denied.live.>"]';
const user = `{ user: gateway, password: secret, permissions { publish { ${denied} } } }`;
const server = await natsServerForFile({
  extraConfig: `no_auth_user: gateway\nauthorization { users: [ ${user} ] }`,
});
const within = { timeout: 20_000, interval: 50 };

test("readiness names the missing permission of the NATS user", async () => {
  const rig = await startRig(server, { settings: { subjectPrefix: "denied" }, ackTimeoutMs: 200 });
  const isDenied = expect.stringMatching(
    /^stream DENIED_LIVE_0 cannot be written: the user lacks a permission .*Publish to "denied\.live\.0\..*: give the user in PENSTOCK_NATS_URL this permission/,
  );
  expect((await rig.send("live", "refused")).code).toBe("timeout");
  await vi.waitFor(async () => expect(await rig.streams.check()).toEqual([isDenied]), within);
  expect((await rig.send("historical", "taken")).code).toBeUndefined();
  expect(rig.log.join("\n")).not.toContain("make room");

  const file = path.join(path.dirname(server.storeDir), "nats.conf");
  writeFileSync(file, readFileSync(file, "utf8").replace(denied, 'deny: ["nothing"]'));
  kill(server.pid, "SIGHUP");
  await vi.waitFor(async () => expect(await rig.send("live", "taken")).toEqual(stored), within);
  expect(await rig.streams.check()).toEqual([]);
  await rig.close();
});
