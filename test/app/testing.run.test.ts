import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { PostHog } from "posthog-node";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StartedPenstock, StartOptions } from "../../packages/testing/index.d.cts";
import { findNatsServer } from "../kit/nats-server.ts";
import { ended } from "../kit/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { startPenstock, connectPenstock } = createRequire(import.meta.url)(
  "../../packages/testing/index.cjs",
) as typeof import("../../packages/testing/index.d.cts");
const program = [process.execPath, path.join(root, "src/main.ts")] as const;

async function started(options: StartOptions = {}): Promise<StartedPenstock> {
  const env = { PENSTOCK_NATS_SERVER: findNatsServer(), ...options.env };
  const penstock = await startPenstock({ program, ...options, env });
  onTestFinished(() => penstock.stop());
  return penstock;
}

async function send(penstock: StartedPenstock, event: object): Promise<number> {
  const body = JSON.stringify({ api_key: penstock.key, ...event });
  return (await fetch(`${penstock.url}/capture/`, { method: "POST", body })).status;
}

describe("penstock testing", () => {
  test("resolves an expectation before and after the event is stored", async () => {
    const penstock = await started();
    const early = penstock.expect({ event: "bought", properties: { total: 42 } });
    const posthog = new PostHog(penstock.key, { host: penstock.url });
    posthog.capture({ distinctId: "user-1", event: "bought", properties: { total: 42 } });
    await posthog.shutdown();
    const stored = await early;
    expect(stored).toMatchObject({ event: "bought", distinct_id: "user-1", project_id: "demo" });
    expect(await penstock.expect({ uuid: stored.uuid }, { timeoutMs: 0 })).toEqual(stored);
    expect(await penstock.events()).toEqual([stored]);
  });

  test("forgets all earlier events at a reset", async () => {
    const penstock = await started();
    expect(await send(penstock, { event: "before", distinct_id: "a" })).toBe(200);
    await penstock.reset();
    expect(await send(penstock, { event: "after", distinct_id: "a" })).toBe(200);
    const other = await connectPenstock(penstock.adminUrl);
    expect((await other.events()).map(({ event }) => event)).toEqual(["after"]);
    await expect(other.expect({ event: "before" }, { timeoutMs: 0 })).rejects.toThrow(
      /^no stored event matches {"event":"before"} \(waited 0 ms\)\nThe nearest of 1 stored event has/,
    );
  });

  test("explains a missing event by the rejections since the last reset", async () => {
    const penstock = await started();
    const rejected = { api_key: "phc_wrong", event: "bought", distinct_id: "a" };
    expect(await send(penstock, rejected)).toBe(401);
    expect(await send(penstock, { event: "bought" })).toBe(200);
    const miss = () => penstock.expect({ event: "bought" }, { timeoutMs: 0 });
    await expect(miss()).rejects.toThrow(
      /No event is stored\.\nRejected with 401: \w+: [\s\S]*\/docs\/errors#/,
    );
    await expect(miss()).rejects.toThrow(/Not stored: no_distinct_id: /);
    await penstock.reset();
    await expect(miss()).rejects.toThrow(/No event is stored\.\nThe gateway has rejected no event/);
  });

  test("rejects unknown options with the most similar name", async () => {
    const wrong = { prt: 1 } as StartOptions;
    await expect(startPenstock(wrong)).rejects.toThrow(
      "startPenstock: unknown option prt: did you mean port? the options are port, env, program",
    );
    const penstock = await started();
    const late = { timeoutMS: 10 } as object;
    await expect(penstock.expect({ event: "bought" }, late)).rejects.toThrow(
      "expect: unknown option timeoutMS: did you mean timeoutMs? the only option is timeoutMs",
    );
  });

  test("reports invalid expectations and unknown pages", async () => {
    const penstock = await started();
    await expect(penstock.expect({ distinctId: "a" })).rejects.toThrow(/use distinct_id$/);
    await expect(penstock.expect({}, { timeoutMs: -1 })).rejects.toThrow(
      "timeout_ms must be a number from 0 to 600000 (got -1)",
    );
    const post = (body: string) =>
      fetch(`${penstock.adminUrl}/testing/expect`, { method: "POST", body });
    expect([(await post("{")).status, (await post("[]")).status]).toEqual([400, 400]);
    const unknown = await fetch(`${penstock.adminUrl}/testing/nothing`);
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { message: expect.stringMatching(/^GET \/testing\/nothing is unknown: use GET \/testing,/) },
    ]);
  });

  test("rejects cross-site requests and requests without the admin token", async () => {
    const penstock = await started();
    const events = `${penstock.adminUrl}/testing/events`;
    const reset = `${penstock.adminUrl}/testing/reset`;
    for (const headers of [{ Origin: "http://example.com" }, { "Sec-Fetch-Site": "cross-site" }]) {
      expect((await fetch(events, { headers })).status).toBe(403);
      expect((await fetch(reset, { method: "POST", headers })).status).toBe(403);
    }
    const token = "an-admin-token-01";
    const [file, ...args] = [...program, "testing", "--json", "--port", "0"];
    const nats = { PENSTOCK_NATS_SERVER: findNatsServer() };
    const env = { ...process.env, ...nats, PENSTOCK_ADMIN_TOKEN: token, PENSTOCK_ADMIN_PORT: "0" };
    const alone = spawn(file!, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    onTestFinished(async () => {
      alone.kill("SIGTERM");
      await ended(alone);
    });
    const [line] = (await once(alone.stdout, "data")) as [Buffer];
    const { adminUrl } = JSON.parse(line.toString()) as { adminUrl: string };
    await expect(connectPenstock(adminUrl)).rejects.toThrow(/send one of the port's tokens/);
    const statusOf = async (headers: Record<string, string>) =>
      (await fetch(`${adminUrl}/testing/events`, { headers })).status;
    expect(await statusOf({})).toBe(401);
    expect(await statusOf({ Authorization: `Bearer ${token}` })).toBe(200);
  });

  test("removes its store when it is stopped", async () => {
    const folders = () =>
      ["/dev/shm", "/tmp"]
        .filter(existsSync)
        .flatMap((parent) => readdirSync(parent).filter((name) => /^penstock-testing-/.test(name)));
    const before = new Set(folders());
    const penstock = await started();
    const own = folders().filter((name) => !before.has(name));
    expect(own.length).toBeGreaterThan(0);
    await penstock.stop();
    // Other tests may have stores at the same time.
    expect(folders().filter((name) => own.includes(name)).length).toBeLessThan(own.length);
    await expect(penstock.events()).rejects.toThrow(/does not respond at http/);
    const [file, ...args] = [...program, "testing", "--json", "--exit-with-stdin"];
    const env = { ...process.env, PENSTOCK_NATS_SERVER: findNatsServer() };
    const alone = spawn(file!, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    onTestFinished(() => void alone.kill("SIGKILL"));
    const [line] = (await once(alone.stdout, "data")) as [Buffer];
    expect(JSON.parse(line.toString())).toMatchObject({ key: "phc_demo" });
    alone.stdin.end();
    expect(await ended(alone)).toBe(0);
  });

  test("does not start if PENSTOCK_NATS_URL is set", async () => {
    const env = { PENSTOCK_NATS_URL: "nats://127.0.0.1:1" };
    await expect(startPenstock({ program, env })).rejects.toThrow(
      "penstock did not start: penstock: `testing` starts its own NATS: unset PENSTOCK_NATS_URL (exit code 2)",
    );
    await expect(startPenstock({ program: ["/nowhere/penstock"] })).rejects.toThrow(/ENOENT/);
    await expect(startPenstock()).rejects.toThrow(/the package penstock is not installed/);
  });
});
