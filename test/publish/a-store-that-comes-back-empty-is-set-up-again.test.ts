import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { linesOf, startRig, stored } from "./rig.ts";

let server: TestNatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.remove());

test("a server that comes back on an empty disk gets its streams again", async () => {
  const rig = await startRig(server);
  expect(await rig.send("live", "before")).toEqual(stored);
  await server.kill();
  rmSync(server.storeDir, { recursive: true });
  const waiting = rig.send("live", "after");
  await server.restart();
  expect(await waiting).toEqual(stored);
  expect(linesOf(await rig.stored("live"))).toEqual(["after"]);
  await rig.close();
});
