import { existsSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../kit/processes.ts";
import { doctor, doctorAt, expectOne, relayTo, serverWith } from "./doctor-kit.ts";

/** The documented limit is ten seconds. */
const endsWithinMs = 12_000;
const machine = ["memory", "open files", "addons", "public port", "admin port", "effects port"];

describe("doctor", () => {
  test("makes all other checks if no NATS server is running", async () => {
    const run = await doctorAt({ url: "nats://127.0.0.1:1" });
    expect(run.exitCode).toBe(1);
    expect(expectOne(run, "nats", "fail").found).toContain("nats://127.0.0.1:1");
    for (const check of machine) expect(run.of(check)).toHaveLength(1);
  });

  test("makes all other checks if no embedded nats-server runs", async () => {
    const dataDir = path.join(temporaryFolder(), "data");
    const run = await doctor({ PENSTOCK_DATA_DIR: dataDir });
    expect(run.exitCode, run.out).toBe(0);
    expect(expectOne(run, "nats", "warn").fix).toContain("npm run up");
    expectOne(run, "nats-server", "ok");
    expectOne(run, "disk", "ok");
    for (const check of machine) expect(run.of(check)).toHaveLength(1);
    expect(existsSync(dataDir)).toBe(false);
  });

  test("makes all other checks if a server does not respond", async () => {
    const frozen = await serverWith();
    frozen.freeze();
    const server = await serverWith();
    const afterFirst = await relayTo(server, (text) => text);
    afterFirst.silence("PONG");
    const afterAccount = await relayTo(server, (text) => text);
    afterAccount.silence("account_info_response");
    const sinceMs = performance.now();
    const runs = await Promise.all([
      doctorAt(frozen),
      doctorAt(afterFirst),
      doctorAt(afterAccount),
    ]);
    expect(performance.now() - sinceMs).toBeLessThan(endsWithinMs);
    expect(expectOne(runs[0]!, "nats", "fail").found).toContain("timeout");
    expect(expectOne(runs[1]!, "nats", "fail").found).toContain("no longer responds");
    expect(expectOne(runs[2]!, "jetstream", "fail").found).toContain("does not respond: timeout");
    for (const run of runs) {
      expect(run.exitCode).toBe(1);
      for (const check of machine) expect(run.of(check)).toHaveLength(1);
    }
  });
});
