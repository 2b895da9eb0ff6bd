// deploy/nats/single.conf, as it is but for the address: a gateway stores into it, and what was
// answered 200 is there after its kill.

import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, test } from "vitest";
import { startTestGateway } from "../kit/gateway.ts";
import { startNode, syncsAlways } from "../kit/nats-layouts.ts";

const server = await startNode({ file: "single.conf" });
const gateway = await startTestGateway({ server });
afterAll(async () => {
  await gateway.stop();
  await server.remove();
});

describe("a single nats-server keeps what it took", () => {
  test("a 200 outlives the kill of the node", async () => {
    const project = await gateway.project();
    const event = { api_key: project.key, event: "kept", distinct_id: "user" };
    expect((await gateway.post("/capture/", event)).status).toBe(200);
    expect(await syncsAlways(server)).toBe(true);
    await server.restart();
    expect((await gateway.events(project)).map((stored) => stored["event"])).toEqual(["kept"]);
  });

  test("who does not show the token is turned away", async () => {
    await expect(connect({ servers: server.url })).rejects.toThrow(/Authorization/);
  });
});
