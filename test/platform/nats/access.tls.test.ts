import { beforeAll, describe, expect, test } from "vitest";
import type { NatsAccess } from "../../../src/platform/nats/access.ts";
import { createAuthority, type PemPair, type TestAuthority } from "../../kit/certificates.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { refusalOf, startTlsServer, tlsUrl, tryToConnect } from "../../kit/nats-tls.ts";

let ours: TestAuthority;
let stranger: TestAuthority;
let client: PemPair;

beforeAll(async () => {
  [ours, stranger] = await Promise.all([createAuthority(), createAuthority("another authority")]);
  client = await ours.client();
});

const files = ({ certFile, keyFile }: PemPair) => ({ natsCert: certFile, natsKey: keyFile });

describe("TLS to NATS", () => {
  test("accepts the configured certificate and authority", async () => {
    const server = await startTlsServer(ours, await ours.server());
    for (const natsUrl of [tlsUrl(server), tlsUrl(server, "localhost"), server.url]) {
      const link = await tryToConnect({ natsUrl, natsCa: ours.caFile, ...files(client) }).link;
      expect(link.connected).toBe(true);
      expect(link.messageBytesMax).toBeGreaterThan(0);
    }
  });

  test("fails immediately with an error that names the setting", async () => {
    const server = await startTlsServer(ours, await ours.server());
    const natsUrl = tlsUrl(server);
    const foreign = await stranger.client();
    const ca = { natsCa: ours.caFile };
    const cases: [NatsAccess, reason: RegExp, setting: RegExp][] = [
      [{ natsUrl, ...ca }, /requires a client certificate/, /PENSTOCK_NATS_CERT/],
      [{ natsUrl, ...ca, ...files(foreign) }, /rejects the client certificate/, /_NATS_CERT/],
      [
        { natsUrl, natsCa: stranger.caFile, ...files(client) },
        /is not trusted/,
        /add .* to PENSTOCK_NATS_CA/,
      ],
      [{ natsUrl, ...files(client) }, /is not trusted/, /set PENSTOCK_NATS_CA/],
      [{ natsUrl: server.url }, /requires TLS, .* not trusted/, /set PENSTOCK_NATS_CA/],
      [{ natsUrl, natsCa: "/absent.pem" }, /PENSTOCK_NATS_CA cannot be used/, /correct PEN/],
    ];
    for (const [access, reason, setting] of cases) {
      const startedMs = performance.now();
      const refusal = await refusalOf(tryToConnect(access));
      expect(refusal.reason).toMatch(reason);
      expect(refusal.fix).toMatch(setting);
      expect(refusal.message).toContain(
        access.natsCa === "/absent.pem" ? natsUrl : `127.0.0.1:${server.port}`,
      );
      expect(performance.now() - startedMs).toBeLessThan(1_500);
    }
  });

  test("names an expired server certificate in its error", async () => {
    const notAfter = new Date(Date.now() - 60_000);
    const expired = await ours.server({ name: "expired", addresses: ["127.0.0.1"], notAfter });
    const server = await startTlsServer(ours, expired);
    const access = { natsUrl: tlsUrl(server), natsCa: ours.caFile, ...files(client) };
    for (const token of [{}, { natsToken: "t" }]) {
      const { reason, fix } = await refusalOf(tryToConnect({ ...access, ...token }));
      expect(reason).toContain("its certificate is not valid");
      expect(fix).toContain("renew the certificate of nats-server");
    }
  });

  test("requires a certificate for the address or host of the URL", async () => {
    const byAddress = await startTlsServer(
      ours,
      await ours.server({ name: "by-address", dns: [] }),
    );
    const byName = await startTlsServer(
      ours,
      await ours.server({ name: "by-name", addresses: [] }),
    );
    const access = { natsCa: ours.caFile, ...files(client) };
    expect((await tryToConnect({ ...access, natsUrl: tlsUrl(byAddress) }).link).connected).toBe(
      true,
    );
    expect(
      (await tryToConnect({ ...access, natsUrl: tlsUrl(byName, "localhost") }).link).connected,
    ).toBe(true);
    // Even "localhost" does not cover 127.0.0.1.
    const wrong = [
      { ...access, natsUrl: tlsUrl(byName) },
      { ...access, natsUrl: tlsUrl(byAddress, "localhost") },
    ];
    for (const attempt of wrong)
      expect((await refusalOf(tryToConnect(attempt))).reason).toContain("does not match");
  });

  test("fails if TLS is required and the server does not support it", async () => {
    const server = await startNatsServer({ jetstream: false });
    try {
      for (const access of [
        { natsUrl: tlsUrl(server) },
        { natsUrl: server.url, natsCa: ours.caFile },
      ]) {
        const { reason, fix } = await refusalOf(tryToConnect(access));
        expect(reason).toMatch(
          /^PENSTOCK_NATS_(URL|CA) requires TLS, but the server does not support it$/,
        );
        expect(fix).toContain("PENSTOCK_NATS_URL");
      }
    } finally {
      await server.remove();
    }
  });
});
