import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { tail } from "../../src/commands/tail.ts";
import { commandWorld } from "../kit/command-context.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { until } from "../kit/gateway.ts";

const gateway = await gatewayForFile();

test("tail continues after its server restarts and its stream is deleted", async () => {
  const project = await gateway.project();
  const send = async (event: string) =>
    await until(async () => {
      const answer = await gateway.post("/capture/", {
        api_key: project.key,
        event,
        distinct_id: "u",
      });
      return answer.status === 200;
    });
  const { context, said, stop } = commandWorld();
  const shown = (): string[] =>
    said.out
      .split("\n")
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { event: string }).event);
  const running = tail(
    gateway.config,
    { project: undefined, lanes: ["live"], fromStart: true },
    context,
  );
  await send("before");
  await until(() => shown().includes("before"));

  await gateway.nats.kill();
  await until(() => said.err.includes("retrying"));
  await gateway.nats.restart();
  await send("after");
  await until(() => shown().includes("after"));
  expect(shown()).toEqual(["before", "after"]);

  said.out = "";
  const connection = await connect({ servers: gateway.nats.url });
  await (await jetstreamManager(connection)).streams.delete("PENSTOCK_LIVE_0");
  await connection.close();
  await gateway.nats.restart();
  await send("after the deletion");
  await until(() => shown().includes("after the deletion"), 20_000);
  expect(said.err).toContain("was replaced or has lost messages");
  stop.abort();
  await running;
});
