// What the tests of TLS to NATS share: a server that speaks nothing else and asks for a
// certificate, and a link to it that is given up when the test ends.

import { onTestFinished, vi } from "vitest";
import type { NatsAccess } from "../src/nats/access.ts";
import { connectNats, type NatsLink } from "../src/nats/link.ts";
import type { PemPair, TestAuthority } from "./certificates.ts";
import { startNatsServer, type TestNatsServer } from "./nats-server.ts";
import { recordingLog } from "./publisher-rig.ts";

/**
 * The `tls` block of a server that shows `own` and takes clients with a certificate of the
 * authority only.
 */
export function mutualTls(authority: TestAuthority, own: PemPair): string {
  const files = { cert_file: own.certFile, key_file: own.keyFile, ca_file: authority.caFile };
  const lines = Object.entries(files).map(([name, file]) => `${name}: ${JSON.stringify(file)}`);
  return `tls { ${lines.join(", ")}, verify: true }`;
}

export async function startTlsServer(
  authority: TestAuthority,
  own: PemPair,
): Promise<TestNatsServer> {
  const server = await startNatsServer({ extraConfig: mutualTls(authority, own) });
  onTestFinished(() => server.remove());
  return server;
}

/** `tls://127.0.0.1:port`. */
export function tlsUrl(server: TestNatsServer, host = "127.0.0.1"): string {
  return `tls://${host}:${server.port}`;
}

interface Attempt {
  readonly log: string[];
  readonly link: Promise<NatsLink>;
}

/** Begins to make a link that may never come to be. */
export function tryToConnect(access: NatsAccess): Attempt {
  const abort = new AbortController();
  const log: string[] = [];
  const link = connectNats({ access, log: recordingLog(log), signal: abort.signal });
  link.catch(() => {});
  onTestFinished(async () => {
    abort.abort();
    await link.then((made) => made.close()).catch(() => {});
  });
  return { log, link };
}

/**
 * The reason of the first "waiting for NATS" in the log. Fails when there is a link instead, or
 * nothing.
 */
export async function waitingReason({ log, link }: Attempt): Promise<string> {
  const line = vi.waitUntil(() => log.find((said) => said.includes("waiting for NATS")), {
    timeout: 30_000,
  });
  const connected = link.then(() => {
    throw new Error("it is connected");
  });
  return (await Promise.race([line, connected])) ?? "";
}
