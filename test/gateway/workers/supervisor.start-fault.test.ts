import { createServer } from "node:net";
import { DiscardPolicy, jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test } from "vitest";
import { ended } from "../../kit/processes.ts";
import {
  natsWithProject,
  type Started,
  serve,
  serveWith,
  withClient,
  workersOn,
} from "../../kit/workers.ts";

async function failure(started: Started): Promise<string> {
  expect(await ended(started)).toBe(1);
  const said = started.said.err.split("\n").filter((line) => line.startsWith("penstock: "));
  expect(said).toHaveLength(1);
  return said[0] ?? "";
}

describe("serve with several workers", () => {
  test("fails with the setting's name if the port is in use", async () => {
    const nats = await natsWithProject();
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    const gateway = await workersOn(nats, "--workers", "2");
    for (const taken of [port, gateway.port]) {
      const advice = `set PENSTOCK_PORT (--port) to another port, or stop the process that uses it; \`ss -ltnp sport = :${taken}\` shows it`;
      expect(await failure(serve(nats, "--workers", "2", "--port", String(taken)))).toBe(
        `penstock: cannot listen on 127.0.0.1 port ${taken}: the port is taken: ${advice}`,
      );
    }
    expect(await gateway.readyz()).toMatchObject([200, { workers_ready: 2 }]);
  });

  test("fails if a stream may lose acknowledged events", async () => {
    const nats = await natsWithProject();
    const subjects = ["penstock.live.0.*"];
    await withClient(nats, async (connection) =>
      (await jetstreamManager(connection)).streams.add({
        name: "PENSTOCK_LIVE_0",
        subjects,
        discard: DiscardPolicy.Old,
      }),
    );
    expect(await failure(serve(nats, "--workers", "2"))).toContain(
      "cannot use stream PENSTOCK_LIVE_0: it cannot guarantee",
    );
  });

  test("ends the started workers if another worker fails to start", async () => {
    const nats = await natsWithProject();
    const secondEnds = `const { emit } = process;
    process.emit = function (name, message, ...rest) {
      if (name === "message" && message.type === "start" && message.index === 1) process.exit(3);
      return emit.call(this, name, message, ...rest);
    };`;
    const variables = {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(secondEnds)}`,
    };
    const started = serveWith(variables, nats, "--workers", "2", "--drain-delay-ms", "60000");
    expect(await failure(started)).toBe(
      "penstock: cannot start worker 1: the process ended with exit code 3",
    );
    expect(started.said.err).toContain("worker accepts connections");
  });

  test("can be stopped while it waits for NATS", async () => {
    const nats = await natsWithProject();
    await nats.kill();
    const started = serve(nats, "--workers", "2");
    await expect.poll(() => started.said.err, { timeout: 30_000 }).toContain("waiting for NATS");
    started.kill("SIGTERM");
    expect(await ended(started)).toBe(0);
  });
});
