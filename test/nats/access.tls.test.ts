// A real nats-server that takes TLS with a client certificate and nothing else: who is let in, and
// what the log of those says who are not. A gateway that is refused waits, as for a server that is
// not there.

import { beforeAll, describe, expect, test } from "vitest";
import { createAuthority, type PemPair, type TestAuthority } from "../../testkit/certificates.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { startTlsServer, tlsUrl, tryToConnect, waitingReason } from "../../testkit/nats-tls.ts";

let ours: TestAuthority;
let stranger: TestAuthority;
let client: PemPair;

beforeAll(async () => {
  [ours, stranger] = await Promise.all([createAuthority(), createAuthority("another authority")]);
  client = await ours.client();
});

const files = ({ certFile, keyFile }: PemPair) => ({ natsCert: certFile, natsKey: keyFile });

describe("TLS to NATS needs the right certificates", () => {
  test("with our certificate and the server's authority it connects, by tls:// or not", async () => {
    const server = await startTlsServer(ours, await ours.server());
    for (const natsUrl of [tlsUrl(server), tlsUrl(server, "localhost"), server.url]) {
      const link = await tryToConnect({ natsUrl, natsCa: ours.caFile, ...files(client) }).link;
      expect(link.connected).toBe(true);
      expect(link.messageBytesMax).toBeGreaterThan(0);
    }
  });

  test("refused, and the log says why", async () => {
    const server = await startTlsServer(ours, await ours.server());
    const natsUrl = tlsUrl(server);
    const foreign = await stranger.client();
    const reasons = await Promise.all([
      waitingReason(tryToConnect({ natsUrl, natsCa: ours.caFile })),
      waitingReason(tryToConnect({ natsUrl, natsCa: ours.caFile, ...files(foreign) })),
      waitingReason(tryToConnect({ natsUrl, natsCa: stranger.caFile, ...files(client) })),
      waitingReason(tryToConnect({ natsUrl, ...files(client) })),
      waitingReason(tryToConnect({ natsUrl: server.url })),
    ]);
    expect(reasons[0]).toContain("it asks for a client certificate");
    expect(reasons[1]).toContain("it asks for another client certificate than ours");
    for (const reason of reasons.slice(2)) expect(reason).toMatch(/certificate/);
  });

  test("a certificate has to name the address or the host of the url", async () => {
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
    // Not even "localhost" vouches for 127.0.0.1.
    const wrong = [
      { ...access, natsUrl: tlsUrl(byName) },
      { ...access, natsUrl: tlsUrl(byAddress, "localhost") },
    ];
    for (const attempt of wrong)
      expect(await waitingReason(tryToConnect(attempt))).toContain("does not match");
  });

  test("a server without TLS is refused where TLS is asked for", async () => {
    const server = await startNatsServer({ jetstream: false });
    try {
      for (const access of [
        { natsUrl: tlsUrl(server) },
        { natsUrl: server.url, natsCa: ours.caFile },
      ]) {
        expect(await waitingReason(tryToConnect(access))).toContain(
          "server does not support 'tls'",
        );
      }
    } finally {
      await server.remove();
    }
  });
});
