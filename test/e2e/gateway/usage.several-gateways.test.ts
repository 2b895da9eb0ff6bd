import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ConfiguredCommand } from "../../../src/commands/context.ts";
import { limit, list, usage } from "../../../src/commands/project.ts";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import { readUsage, UsageWriter } from "../../../src/gateway/projects/usage/usage.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { type TestGateway, until } from "../../kit/gateway.ts";

const first = await gatewayForFile();
const second = await gatewayForFile({ server: first.nats });

async function printed(run: (command: ConfiguredCommand) => Promise<void>): Promise<string> {
  const { context, said } = commandWorld();
  await run({ config: first.config, context });
  return said.all;
}

describe("the usage of a project", () => {
  test("is the sum of accepted, dropped and rejected events over two gateways", async () => {
    const project = await first.project();
    const good = { event: "e", distinct_id: "u" };
    const bad = { ...good, properties: 1 };
    const post = (gateway: TestGateway, batch: object[], more = {}) =>
      gateway.post("/batch/", { api_key: project.key, batch, ...more });
    await until(async () => (await post(second, [])).status === 200);
    expect((await post(first, [good, {}, bad])).status).toBe(200);
    expect((await post(second, [good, good, good], { historical_migration: true })).status).toBe(
      200,
    );
    expect((await post(second, [bad, bad])).status).toBe(400);
    const listed = await printed((command) =>
      limit(command, project.id, { eventsPerSecond: 0.001, burst: 1, none: false }),
    );
    expect(listed).toContain("0.001 events/s, burst 1 s");
    expect(await printed((command) => list(command, false))).toContain("0.001 events/s, burst 1 s");
    let [accepted, requests] = [4, 0];
    const refused = Array.from({ length: 7 }, () => good);
    for (const gateway of [first, second]) {
      await until(async () => {
        const { status } = await post(gateway, refused);
        if (status === 200) accepted += 7;
        else requests++;
        return status === 429;
      });
    }
    await first.close();
    await second.close();
    const bytes = JSON.stringify({ api_key: project.key, batch: refused }).length;
    const [record, ...others] = JSON.parse(
      await printed((command) => usage(command, project.id, true)),
    );
    expect(others).toEqual([]);
    expect(record).toMatchObject({ project: project.id, accepted, dropped: 4 });
    expect(record.rate_limited).toEqual({
      requests,
      events: 7 * requests,
      bytes: bytes * requests,
    });
    expect(Date.parse(record.since)).toBeLessThanOrEqual(Date.parse(record.at));
    expect(record.accepted_per_second).toBeGreaterThan(0);
    const table = await printed((command) => usage(command, undefined, false));
    expect(table.split("\n").find((line) => line.startsWith(project.id))).toMatch(
      new RegExp(`^\\S+ +${accepted} `),
    );
    const ofMissing = printed((command) => usage(command, "absent", false));
    await expect(ofMissing).rejects.toThrow("there is no project absent");
  });

  test("is written regularly while a gateway runs", async () => {
    const connection = await connect({ servers: first.nats.url });
    onTestFinished(() => connection.close());
    const place = { prefix: "running", replicas: 1 };
    const meter = new Meter(() => performance.now());
    const quiet = new Meter(() => performance.now());
    const meters = () => [meter, quiet].map((of, index) => ({ projectId: `p${index}`, meter: of }));
    const warnings: string[] = [];
    const log = { warn: (_: object, message: string) => void warnings.push(message) };
    const options = {
      ...place,
      connection,
      processId: "one",
      meters,
      exists: () => true,
      log,
      wallMs: () => Date.now(),
      intervalMs: 20,
    };
    const writer = new UsageWriter(options);
    const read = (nowMs = Date.now()) => readUsage(connection, { ...place, nowMs });
    for (let total = 5; total <= 15; total += 5) {
      meter.countStored(5, 0);
      await until(async () => (await read())[0]?.accepted === total);
    }
    const [usage, ...others] = await read();
    expect(others).toEqual([]);
    expect(usage?.acceptedPerSecond).toBeGreaterThan(0);
    expect((await read(Date.now() + 60_000))[0]?.acceptedPerSecond).toBe(0);
    await writer.close();
    expect(warnings).toEqual([]);
  });
});
