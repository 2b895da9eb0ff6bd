import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { gatewayForFile, natsServerForFile } from "../../kit/for-file.ts";
import { startTestGateway, type TestProject, until } from "../../kit/gateway.ts";

const mebibyte = 1_048_576;
const streamBytes = 16 * mebibyte;

const gateway = await gatewayForFile({ env: { PENSTOCK_STREAM_BYTES_MAX: String(streamBytes) } });
const flood = await gateway.project();
const quiet = await gateway.project();
const connection = await connect({ servers: gateway.config.natsUrl ?? "" });

afterAll(() => connection.close());

async function send({ key }: TestProject, events: number, to = gateway): Promise<string> {
  const event = { event: "e", distinct_id: "u", properties: { text: "x".repeat(4_000) } };
  const { status, json } = await to.post("/batch/", {
    api_key: key,
    batch: Array(events).fill(event),
  });
  return status === 200 ? "stored" : String(json["code"]);
}

async function stream(purge?: string): Promise<{ bytes: number; max: number }> {
  const jsm = await jetstreamManager(connection);
  const { subjectPrefix } = gateway.config;
  const name = `${subjectPrefix}_LIVE_0`.toUpperCase();
  if (purge !== undefined) await jsm.streams.purge(name, { filter: purge });
  const { state, config } = await jsm.streams.info(name);
  return { bytes: state.bytes, max: config.max_bytes };
}

async function floodUntilRefused(): Promise<void> {
  for (let sent = 0; sent < 100; sent++) {
    const outcome = await send(flood, 50);
    if (outcome === "project_full") return;
    expect(outcome).toBe("stored");
  }
  throw new Error("flood a stream: it was never refused");
}

describe("a project's share of a stream", () => {
  test("ends a flood of the project with 503", async () => {
    await floodUntilRefused();
    const { bytes, max } = await stream();
    expect(max).toBe(streamBytes);
    expect(bytes).toBeGreaterThan(0.75 * max);
    expect(bytes).toBeLessThan(0.78 * max);
    for (let times = 0; times < 20; times++) {
      expect(await send(quiet, 5)).toBe("stored");
      expect(await send(flood, 1)).toBe("project_full");
    }
    const { headers } = await gateway.post("/capture/", {
      api_key: flood.key,
      event: "e",
      distinct_id: "u",
    });
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(30);
    expect(await gateway.metrics()).toMatch(/^penstock_projects_over_share 1$/m);
  });

  test("returns 503 for a large request after a part is stored", async () => {
    const max = 4 * streamBytes;
    const larger = await startTestGateway({ env: { PENSTOCK_STREAM_BYTES_MAX: String(max) } });
    onTestFinished(() => larger.stop());
    const [large, other] = [await larger.project(), await larger.project()];
    // The stored events fill two thirds of the stream. The last request would exceed the share of
    // three quarters.
    for (let sent = 0; sent < 5; sent++) expect(await send(large, 2_100, larger)).toBe("stored");
    expect(await send(large, 3_800, larger)).toBe("project_full");
    const client = await connect({ servers: larger.config.natsUrl ?? "" });
    onTestFinished(() => client.close());
    const jsm = await jetstreamManager(client);
    const { state } = await jsm.streams.info(`${larger.config.subjectPrefix}_LIVE_0`.toUpperCase());
    expect(state.bytes).toBeGreaterThan(0.74 * max);
    expect(state.bytes).toBeLessThan(0.78 * max);
    expect(await send(other, 5, larger)).toBe("stored");
  });

  test("is enforced across two gateways", async () => {
    const server = await natsServerForFile();
    const env = {
      PENSTOCK_STREAM_BYTES_MAX: String(4 * streamBytes),
      PENSTOCK_PROJECT_SHARE: "20",
    };
    const [one, two] = [
      await startTestGateway({ server, env }),
      await startTestGateway({ server, env }),
    ];
    onTestFinished(async () => {
      await one.stop();
      await two.stop();
    });
    const [large, other] = [await one.project(), await one.project()];
    let outcome = "stored";
    for (let sent = 0; sent < 200 && outcome === "stored"; sent++) {
      const gateway = sent % 2 === 0 ? one : two;
      await until(async () => (await send(other, 1, gateway)) === "stored");
      outcome = await send(large, 50, gateway);
    }
    expect(outcome).toBe("project_full");
    await until(async () => (await send(large, 1, one)) === "project_full");
    await until(async () => (await send(large, 1, two)) === "project_full");
    for (const gateway of [one, two]) expect(await send(other, 5, gateway)).toBe("stored");
    await one.limit(large, { burstSeconds: 10, streamShare: 40 });
    await until(async () => (await send(large, 50, one)) === "stored");
    expect(await one.metrics()).toMatch(/^penstock_projects_over_share 0$/m);
  });

  test("does not apply to a project with little data in a full stream", async () => {
    const { subjectPrefix } = gateway.config;
    const subject = `${subjectPrefix}.live.0.stranger`;
    await stream(">");
    for (let filled = 0; filled < 15; filled++) {
      await jetstream(connection).publish(subject, new Uint8Array(mebibyte - 1_000));
    }
    const outcomes: string[] = [];
    while (outcomes.length < 200 && outcomes.at(-1) !== "store_full")
      outcomes.push(await send(quiet, 2));
    expect(outcomes.length).toBeGreaterThan(10);
    for (let times = 0; times < 20; times++) outcomes.push(await send(quiet, 2));
    expect(new Set(outcomes)).toEqual(new Set(["stored", "store_full"]));
    await stream(subject);
    await until(async () => {
      const outcome = await send(quiet, 10);
      expect(outcome).not.toBe("project_full");
      return outcome === "stored";
    }, 10_000);
  });
});
