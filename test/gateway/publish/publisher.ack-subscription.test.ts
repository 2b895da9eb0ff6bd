import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { kill } from "node:process";
import { expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, startRig, stored } from "../../kit/publisher-rig.ts";

const allowed = 'deny: ["nothing"]';
const denied = 'deny: ["_INBOX.>"]';
const user = `{ user: gateway, password: secret, permissions { subscribe { ${allowed} } } }`;
const server = await natsServerForFile({
  extraConfig: `no_auth_user: gateway\nauthorization { users: [ ${user} ] }`,
});

function reload(from: string, to: string): void {
  const file = path.join(path.dirname(server.storeDir), "nats.conf");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(from, to));
  kill(server.pid, "SIGHUP");
}

test("acknowledgements arrive again once the server permits the subscription", async () => {
  const rig = await startRig(server, { ackTimeoutMs: 300 });
  expect(await rig.send("live", "before")).toEqual(stored);
  reload(allowed, denied);
  await vi.waitFor(() => expect(rig.log.join("\n")).toContain("PubAck subscription closed"), 5_000);
  const waiting = rig.send("live", "during");
  expect(await rig.streams.check()).toEqual([expect.stringContaining("JetStream does not answer")]);
  reload(denied, allowed);
  expect((await waiting).code).toBeUndefined();
  expect(await rig.send("live", "after")).toEqual(stored);
  expect(linesOf(await rig.stored("live"))).toEqual(["before", "during", "after"]);
  expect(rig.log.join("\n")).not.toContain("NATS connection lost");
  await rig.close();
});
