import { mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { natsFolder, writeConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { identify } from "../../../src/platform/embedded/process-identity.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { load, short, startLoad } from "./load-kit.ts";

const gateway = await gatewayForFile();

describe("the load test of a fast gateway", () => {
  test("sends single compressed events from two threads", async () => {
    const project = await gateway.project();
    const { code, result } = await load(
      "--url",
      gateway.url,
      "--key",
      project.key,
      "--nats-url",
      gateway.nats.url,
      "--rate",
      "300",
      "--duration",
      "1",
      "--warm-up",
      "0.5",
      "--threads",
      "2",
      "--gzip",
      "--event-bytes",
      "333",
    );
    expect(result.failures).toEqual([]);
    expect(code).toBe(0);
    expect(result.requests).toMatchObject({
      due: 450,
      sent: 450,
      notSent: 0,
      unanswered: 0,
      acknowledged: 450,
    });
    expect(result.answers).toEqual({ "200": 450 });
    expect(result.stored).toEqual({
      acknowledged: 450,
      refused: 0,
      unknown: 0,
      storedOnce: 450,
      storedMoreThanOnce: 0,
      storedAgainAfterUnknown: 0,
      lost: 0,
      storedThoughRefused: 0,
      storedThoughUnknown: 0,
    });
    const { p50, p99, max } = result.latencyFromDueMs ?? { p50: 0, p99: 0, max: 0 };
    expect(p50).toBeGreaterThan(0);
    expect(p99).toBeGreaterThanOrEqual(p50);
    expect(max).toBeGreaterThanOrEqual(p99);
    const events = await gateway.events(project);
    expect(events).toHaveLength(450);
    expect(new Set(events.map((event) => event["uuid"])).size).toBe(450);
    // The last event was received about 1.5 s after the first, as scheduled.
    const received = events.map((event) => Date.parse(String(event["received_at"])));
    expect(Math.max(...received) - Math.min(...received)).toBeGreaterThan(1_300);
  });

  test("sends batches and finds NATS by the data folder", async () => {
    const project = await gateway.project();
    const dataDir = temporaryFolder();
    mkdirSync(natsFolder(dataDir));
    const { url, pid } = gateway.nats;
    writeConnectionNote(dataDir, {
      url,
      token: "",
      pid,
      startedAt: identify(pid, process)?.startedAt ?? "",
    });
    const { code, out } = await startLoad(
      "--url",
      gateway.url,
      "--key",
      project.key,
      "--data-dir",
      dataDir,
      "--rate",
      "2000",
      "--batch",
      "50",
      ...short,
    ).finished;
    expect(out).toMatch(/stored once +2,000\n/);
    expect(out).toMatch(/^ {2}200 +40$/m);
    expect(out).toContain("OK: 100.00 % of the due requests were answered 200");
    expect(code).toBe(0);
    expect(await gateway.events(project)).toHaveLength(2_000);
  });

  test("ends early with the fix if the key is wrong", async () => {
    const { code, result } = await load(
      "--url",
      gateway.url,
      "--key",
      "phc_wrong",
      "--rate",
      "20",
      "--duration",
      "600",
    );
    const { due } = result.requests;
    expect(due).toBeLessThan(20 * 600);
    expect(result.answers).toEqual({ "401 unknown_api_key": due });
    expect(result.interrupted).toBe(true);
    expect(result.failures[0]).toContain(
      "every request was answered 401 unknown_api_key: give the key of a project with --key",
    );
    expect(result.latencyFromDueMs).toBeNull();
    expect(code).toBe(1);
  });
});
