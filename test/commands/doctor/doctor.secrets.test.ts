import { describe, expect, test } from "vitest";
import { doctor, expectOne, monitorOf, serverWith } from "./doctor-kit.ts";

const secret = "hunter2-not-to-be-seen";

describe("doctor", () => {
  test.each([[true], [false]])("prints no secrets (--json: %s)", async (json) => {
    const server = await serverWith({ token: secret, extraConfig: 'http: "127.0.0.1:-1"' });
    const monitor = monitorOf(server).replace("//", `//admin:${secret}@`);
    const host = server.url.replace("nats://", "");
    const wrongMonitor = { json, monitor: `ftp://admin:${secret}@127.0.0.1` };
    const deadMonitor = { json, monitor: `http://admin:${secret}@127.0.0.1:1` };
    const right = await doctor(
      { PENSTOCK_NATS_URL: server.url, PENSTOCK_NATS_TOKEN: secret },
      { json, monitor },
    );
    const wrong = await doctor({ PENSTOCK_NATS_URL: `nats://user:${secret}@${host}` }, { json });
    const runs = [
      right,
      await doctor({ PENSTOCK_NATS_URL: `nats://${secret}@${host}` }, deadMonitor),
      wrong,
      await doctor({ PENSTOCK_NATS_URL: server.url }, wrongMonitor),
      await doctor({ PENSTOCK_NATS_URL: `nats://x:${secret}@` }, { json }),
    ];
    for (const { out, err } of runs) expect(out + err).not.toContain(secret);
    expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0, 1, 2, 2]);
    if (json) {
      expectOne(right, "sync_interval", "ok");
      expect(expectOne(wrong, "nats", "fail").found).toMatch(/authorization/i);
    }
  });
});
