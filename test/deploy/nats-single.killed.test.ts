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

describe("a single nats-server with deploy/nats/single.conf", () => {
  test("still has an acknowledged event after it was killed", async () => {
    const project = await gateway.project();
    const event = { api_key: project.key, event: "kept", distinct_id: "user" };
    expect((await gateway.post("/capture/", event)).status).toBe(200);
    expect(await syncsAlways(server)).toBe(true);
    await server.restart();
    expect((await gateway.events(project)).map((stored) => stored["event"])).toEqual(["kept"]);
  });

  test("rejects clients without the token", async () => {
    await expect(connect({ servers: server.url })).rejects.toThrow(/Authorization/);
  });
});
