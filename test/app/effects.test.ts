import { existsSync, readdirSync } from "node:fs";
import { constants, getPriority } from "node:os";
import path from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { readHolder } from "../../src/platform/embedded/data-lock.ts";
import { effectsMetricTable } from "../../src/readers/effects/metrics/metric-table.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import {
  embeddedOn,
  ended,
  isRunning,
  penstock,
  penstockWith,
  type SpeakingProcess,
  temporaryFolder,
} from "../kit/processes.ts";

const gateway = await gatewayForFile();
const start = ["--stream-bytes-max", "8388608", "--port", "0", "--admin-port", "0"];
const slow = { timeout: 30_000 };

interface Up {
  readonly child: SpeakingProcess;
  readonly dataDir: string;
  readonly captureUrl: string;
  readonly personUrl: string;
}

async function up(
  env: Record<string, string> = {},
  { dataDir = temporaryFolder(), options = [] }: { dataDir?: string; options?: string[] } = {},
): Promise<Up> {
  const child = penstockWith(env, "up", "--data-dir", dataDir, ...start, ...options);
  await expect.poll(() => child.said.out, slow).toContain("/persons?distinct_id=me");
  const captureUrl = /(http\S+\/capture\/)/.exec(child.said.out)?.[1] ?? "";
  const personUrl = /(http\S+\/persons\?distinct_id=me)/.exec(child.said.out)?.[1] ?? "";
  return { child, dataDir, captureUrl, personUrl };
}

async function send(captureUrl: string, event: object): Promise<number> {
  const body = JSON.stringify({ api_key: "phc_demo", distinct_id: "me", ...event });
  const answer = await fetch(captureUrl, { method: "POST", body });
  await answer.arrayBuffer();
  return answer.status;
}

async function shown(url: string): Promise<{ status: number; body: Record<string, unknown> }> {
  try {
    const answer = await fetch(url);
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  } catch {
    return { status: 0, body: {} };
  }
}

function effectsPids({ child }: Up): number[] {
  const lines = child.said.err.matchAll(/"pid":(\d+),"msg":"effects process started"/g);
  return [...lines].map(([, pid]) => Number(pid));
}

describe("the effects process of `penstock up`", () => {
  test("stops at events that left their stream, and continues with --accept-expired", async () => {
    const { child, dataDir, captureUrl, personUrl } = await up();
    expect(await send(captureUrl, { event: "hello" })).toBe(200);
    await expect.poll(async () => (await shown(personUrl)).status, slow).toBe(200);
    child.kill("SIGTERM");
    expect(await ended(child)).toBe(0);
    const embedded = await embeddedOn(dataDir);
    const connection = await connect({ servers: embedded.url, token: embedded.token });
    await jetstream(connection).publish("penstock.live.0.demo", "{}\n");
    await (await jetstreamManager(connection)).streams.purge("PENSTOCK_LIVE_0");
    await connection.close();
    await embedded.close();

    const stopped = await up({}, { dataDir });
    const readiness = async (at: Up) => await shown(new URL("/readyz", at.personUrl).href);
    const remedy =
      /1 messages left the stream before they were read.*`penstock up --accept-expired`/;
    await expect
      .poll(async () => String((await readiness(stopped)).body["reasons"]), slow)
      .toMatch(remedy);
    expect(stopped.child.said.err).toMatch(remedy);
    stopped.child.kill("SIGTERM");
    expect(await ended(stopped.child)).toBe(0);
    const accepting = await up({}, { dataDir, options: ["--accept-expired"] });
    await expect.poll(async () => (await readiness(accepting)).status, slow).toBe(200);
    expect(accepting.child.said.err).not.toMatch(remedy);
  });

  test("returns the person of an event and restarts when killed", async () => {
    const started = await up();
    const { child, captureUrl, personUrl, dataDir } = started;
    const identify = { event: "$identify", properties: { $set: { n: 1 } } };
    expect(await send(captureUrl, identify)).toBe(200);
    await expect.poll(async () => (await shown(personUrl)).status, slow).toBe(200);
    expect((await shown(personUrl)).body).toMatchObject({ properties: { n: 1 } });

    const [first = 0] = effectsPids(started);
    const tasks = `/proc/${first}/task`;
    const threads = existsSync(tasks) ? readdirSync(tasks).map(Number) : [first];
    for (const thread of threads) expect(getPriority(thread)).toBe(constants.priority.PRIORITY_LOW);
    process.kill(first, "SIGKILL");
    expect(await send(captureUrl, { event: "hello" })).toBe(200);
    await expect.poll(() => effectsPids(started).length, slow).toBe(2);
    const usageUrl = personUrl.replace("persons?distinct_id=me", "usage");
    await expect.poll(async () => (await shown(usageUrl)).body["billable"], slow).toBe(2);

    const command = penstock("person", "demo", "me", "--json", "--data-dir", dataDir);
    expect(await ended(command)).toBe(0);
    expect(JSON.parse(command.said.out)).toMatchObject({ main_distinct_id: "me" });

    child.kill("SIGKILL");
    const [, second = 0] = effectsPids(started);
    await expect.poll(() => isRunning(second), slow).toBe(false);
  });

  test("records its port in the data folder while it runs", async () => {
    const { child, dataDir, captureUrl, personUrl } = await up();
    expect(readHolder(dataDir)).toMatchObject({
      port: Number(new URL(captureUrl).port),
      effectsPort: Number(new URL(personUrl).port),
    });
    child.kill("SIGTERM");
    expect(await ended(child)).toBe(0);
    expect(readHolder(dataDir)).toBeUndefined();
  });
});

describe("`penstock effects`", () => {
  test("waits while another process writes to its database", async () => {
    const { id, key } = await gateway.project();
    const file = `sqlite:${temporaryFolder()}/effects.sqlite`;
    const args = ["effects", "--nats-url", gateway.nats.url, "--effects-url", file];
    const first = penstock(...args);
    await expect.poll(() => first.said.err, slow).toContain("effects applying events");
    await gateway.post("/capture/", { api_key: key, event: "$identify", distinct_id: "me" });
    const second = penstock(...args);
    await expect.poll(() => second.said.err, slow).toContain("waiting for the database");
    first.kill("SIGTERM");
    expect(await ended(first)).toBe(0);
    await expect.poll(() => second.said.err, slow).toContain("effects applying events");
    const port = /"effectsPort":(\d+)/.exec(second.said.err)?.[1] ?? "";
    const base = `http://127.0.0.1:${port}`;
    await expect
      .poll(async () => (await shown(`${base}/projects/${id}/usage`)).body, slow)
      .toMatchObject({ billable: 1 });
    await expect.poll(async () => (await shown(`${base}/readyz`)).status, slow).toBe(200);

    const written = { api_key: key, event: "hello", distinct_id: "eve" };
    expect((await gateway.post("/capture/", written)).status).toBe(200);
    const own = "persons?distinct_id=eve&wait_for=PENSTOCK_LIVE_0:2";
    const { status, body } = await shown(`${base}/projects/${id}/${own}`);
    expect([status, body["as_of"]]).toMatchObject([200, { PENSTOCK_LIVE_0: 2 }]);

    const metrics = await (await fetch(`${base}/metrics`)).text();
    for (const [name, { type }] of Object.entries(effectsMetricTable))
      expect(metrics).toContain(`# TYPE ${name} ${type}\n`);
    expect(metrics).toMatch(/^penstock_effects_lag_messages\{lane="live"\} \d+$/m);
    expect(metrics).not.toContain(id);
    second.kill("SIGTERM");
    expect(await ended(second)).toBe(0);
  });

  test("waits for NATS if it is unreachable", async () => {
    const alone = penstock("effects", "--data-dir", temporaryFolder());
    await expect.poll(() => alone.said.err, slow).toContain("waiting for NATS");
    const port = /"effectsPort":(\d+)/.exec(alone.said.err)?.[1] ?? "";
    const { status, body } = await shown(`http://127.0.0.1:${port}/readyz`);
    expect([status, body["reasons"]]).toEqual([503, ["waiting for NATS"]]);
    alone.kill("SIGTERM");
    expect(await ended(alone)).toBe(0);
  });

  test("logs the NATS address that it waits for, without the password", async () => {
    const url = "nats://me:hunter2@127.0.0.1:1";
    const alone = penstock("effects", "--data-dir", temporaryFolder(), "--nats-url", url);
    const waiting = /"servers":"nats:\/\/127\.0\.0\.1:1","reason":"[^"]+","msg":"waiting for NATS"/;
    await expect.poll(() => alone.said.err, slow).toMatch(waiting);
    const port = /"effectsPort":(\d+)/.exec(alone.said.err)?.[1] ?? "";
    const { body } = await shown(`http://127.0.0.1:${port}/readyz`);
    expect(body["reasons"]).toEqual(["waiting for NATS at nats://127.0.0.1:1"]);
    expect(alone.said.err).not.toContain("hunter2");
  });

  test("logs that a database is new", async () => {
    const dataDir = temporaryFolder();
    const file = path.join(dataDir, "mistyped.sqlite");
    const args = ["--effects-url", `sqlite:${file}`, "--nats-url", gateway.nats.url];
    const first = penstock("effects", "--data-dir", dataDir, ...args);
    const begins = /"stream":"PENSTOCK_LIVE_0","from":1,"to":\d+,"msg":"stream read for the first/;
    await expect.poll(() => first.said.err, slow).toMatch(begins);
    expect(first.said.err).toContain(`"database":"${file}","msg":"effects database is new`);
  });

  test("fails if the folder of the database does not exist", async () => {
    const folder = path.join(temporaryFolder(), "mistyped");
    const at = ["--effects-url", `sqlite:${folder}/effects.sqlite`];
    for (const command of ["effects", "up"]) {
      const child = penstock(command, "--data-dir", temporaryFolder(), ...at);
      expect(await ended(child)).toBe(1);
      expect(child.said.err).toContain(`the folder ${folder} does not exist. Create it`);
      expect(existsSync(folder)).toBe(false);
    }
  });
});
