import { expect, onTestFinished } from "vitest";
import type { NatsAccess } from "../../src/platform/nats/access.ts";
import { connectNats, type NatsLink } from "../../src/platform/nats/link.ts";
import { NatsRefusedError } from "../../src/platform/nats/sign-in.ts";
import type { PemPair, TestAuthority } from "./certificates.ts";
import { startNatsServer, type TestNatsServer } from "./nats-server.ts";
import { recordingLog } from "./publisher-rig.ts";

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

export function tlsUrl(server: TestNatsServer, host = "127.0.0.1"): string {
  return `tls://${host}:${server.port}`;
}

interface Attempt {
  readonly log: string[];
  readonly link: Promise<NatsLink>;
}

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

/** Returns the refusal of an attempt. Fails if the attempt succeeds or is retried. */
export async function refusalOf({ log, link }: Attempt): Promise<NatsRefusedError> {
  const error = await link.then(
    () => new Error("it is connected"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof NatsRefusedError)) throw error;
  expect(log.join()).not.toContain("waiting for NATS");
  return error;
}
