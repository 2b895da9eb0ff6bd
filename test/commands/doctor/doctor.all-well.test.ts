import { describe, expect, test } from "vitest";
import { readHolder } from "../../../src/platform/embedded/data-lock.ts";
import { penstock, temporaryFolder } from "../../kit/processes.ts";
import { upOn } from "../../kit/up-process.ts";
import {
  doctor,
  doctorAt,
  expectOne,
  monitorOf,
  runOf,
  serverWith,
  withJetStream,
} from "./doctor-kit.ts";

async function effectsReady(dataDir: string): Promise<boolean> {
  const port = readHolder(dataDir)?.effectsPort;
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
  return answer?.ok === true;
}

describe("doctor", () => {
  test("reports no problem for a running embedded set-up", async () => {
    const dataDir = temporaryFolder();
    const { adminUrl } = await upOn(dataDir);
    const settings = ["--data-dir", dataDir, "--stream-bytes-max", "67108864"];
    await expect.poll(() => effectsReady(dataDir), { timeout: 30_000 }).toBe(true);

    const text = await runOf(penstock("doctor", ...settings));
    expect(text.exitCode, text.out + text.err).toBe(0);
    expect(text.out).toMatch(
      /^ok {2,4}nats {11}127\.0\.0\.1:\d+ \(penstock-embedded\), no TLS, connected in \d+ ms, round/m,
    );
    const lines = text.out.trimEnd().split("\n");
    expect(lines.at(-1)).toMatch(
      new RegExp(`^${lines.length - 1} checked: \\d+ ok, \\d+ warn, 0 fail$`),
    );
    for (const line of lines.slice(0, -1)) expect(line).toMatch(/^(ok|ok {2}|warn) {2}\S/);

    const json = await doctor({
      PENSTOCK_DATA_DIR: dataDir,
      PENSTOCK_STREAM_BYTES_MAX: "67108864",
    });
    expect(JSON.parse(json.out)).toMatchObject({ fail: 0 });
    expect(expectOne(json, "sync_interval", "ok").found).toContain("always");
    expect(expectOne(json, "registry", "ok").found).toBe("1 project");
    expect(expectOne(json, "streams", "ok").found).toBe("2, as configured");
    expect(expectOne(json, "admin port", "ok").found).toContain("is ready");
    expect(expectOne(json, "effects port", "ok").found).toContain(": applying, lag 0 messages");
    expect(expectOne(json, "public port", "ok").found).toContain("a Penstock already responds");
    for (const check of [
      "settings",
      "nats-server",
      "clock",
      "max_payload",
      "jetstream",
      "replicas",
      "fill",
    ]) {
      expectOne(json, check, "ok");
    }
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    expect(metrics).not.toMatch(/^penstock_\w+\{[^}]*not_found[^}]*\} [1-9]/m);
    expectOne(json, "disk", "ok");
    expectOne(json, "memory", "ok");
    expectOne(json, "addons", "ok");
  });

  test("warns only of the missing registry on an unused server", async () => {
    const server = await serverWith({ extraConfig: 'http: "127.0.0.1:-1"' });
    const run = await doctorAt(server, {}, { monitor: monitorOf(server) });
    expect(run.exitCode, run.out).toBe(0);
    expect(expectOne(run, "sync_interval", "ok").found).toContain("always");
    expect(expectOne(run, "jetstream", "ok").found).toContain("the server has 1.0 GiB");
    expectOne(run, "registry", "warn");
    const { streams, consumers } = await withJetStream(server, (jsm) => jsm.getAccountInfo());
    expect({ streams, consumers }).toEqual({ streams: 0, consumers: 0 });

    // A warning fails only on request.
    const strict = await doctorAt(server, {}, { strict: true });
    expect(strict.exitCode).toBe(1);
  });
});
