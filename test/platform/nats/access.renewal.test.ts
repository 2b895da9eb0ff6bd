import { copyFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createAuthority } from "../../kit/certificates.ts";
import { operatorMode } from "../../kit/nats-operator.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { mutualTls, startTlsServer, tlsUrl, tryToConnect } from "../../kit/nats-tls.ts";
import { temporaryFolder } from "../../kit/processes.ts";

const waitMs = { timeout: 30_000 };

describe("a reconnect to NATS", () => {
  test("uses a renewed certificate", async () => {
    const [before, after] = await Promise.all([
      createAuthority(),
      createAuthority("the next authority"),
    ]);
    const server = await startTlsServer(before, await before.server());
    const client = await before.client();
    const access = {
      natsUrl: tlsUrl(server),
      natsCa: before.caFile,
      natsCert: client.certFile,
      natsKey: client.keyFile,
    };
    const { link, log } = tryToConnect(access);
    const connected = await link;

    await server.kill();
    await vi.waitUntil(() => !connected.connected, waitMs);
    const next = await after.client();
    for (const [from, to] of [
      [after.caFile, before.caFile],
      [next.certFile, client.certFile],
      [next.keyFile, client.keyFile],
    ] as const) {
      copyFileSync(from, to);
    }
    await server.restart({ extraConfig: mutualTls(after, await after.server()) });
    await vi.waitUntil(() => connected.connected, waitMs);
    expect(log.join()).toContain("NATS connected again");
  });

  test("uses a renewed credentials file", async () => {
    const [before, after] = [await operatorMode(), await operatorMode()];
    const natsCreds = path.join(temporaryFolder(), "user.creds");
    writeFileSync(natsCreds, before.creds);
    const server = await startNatsServer({ jetstream: false, extraConfig: before.config });
    onTestFinished(() => server.remove());
    const connected = await tryToConnect({ natsUrl: server.url, natsCreds }).link;
    expect(connected.connected).toBe(true);

    for (const [what, config] of [
      ["-----BEGIN NATS USER JWT-----\nhalf of a", before.config],
      [after.creds, after.config],
    ] as const) {
      await server.kill();
      await vi.waitUntil(() => !connected.connected, waitMs);
      writeFileSync(natsCreds, what);
      await server.restart({ extraConfig: config });
      await vi.waitUntil(() => connected.connected, waitMs);
    }
  });
});
