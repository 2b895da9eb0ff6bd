import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { embeddedOn, temporaryFolder } from "../../kit/processes.ts";

test("a killed embedded nats-server restarts on the same port", async () => {
  const embedded = await embeddedOn(temporaryFolder());
  const { url, token } = embedded;
  const client = await connect({
    servers: url,
    token,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
  for (const restarts of [1, 2]) {
    const killed = embedded.pid;
    process.kill(killed, "SIGKILL");
    await expect
      .poll(() => embedded.pid !== killed && embedded.restarts, { timeout: 30_000 })
      .toBe(restarts);
    expect(embedded.url).toBe(url);
    await expect
      .poll(
        () =>
          client.flush().then(
            () => true,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true);
  }
  await client.close();
});
