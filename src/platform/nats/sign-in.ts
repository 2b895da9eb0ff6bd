// Checks with each configured server, once, whether it accepts this process. The NATS client cannot
// be used for this. With several servers, it hides TLS errors. If all servers reject it, it retries
// forever without a pause.

import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import {
  ConnectionError,
  type ConnectionOptions,
  type NatsConnection,
  PermissionViolationError,
  TimeoutError,
} from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { connect as connectClient } from "@nats-io/transport-node";
import { accessOptions, type NatsAccess, shownUrls, signsInBy, tlsSettings } from "./access.ts";
import { apiCodes, isApiError } from "./api.ts";

export class NatsRefusedError extends Error {
  override name = "NatsRefusedError";
  readonly server: string;
  readonly reason: string;
  readonly fix: string;

  constructor({ server, reason, fix }: Refusal) {
    super(`cannot connect to NATS at ${server}: ${reason}. Fix: ${fix}`);
    this.server = server;
    this.reason = reason;
    this.fix = fix;
  }
}

interface Refusal {
  readonly server: string;
  readonly reason: string;
  readonly fix: string;
}

type SignIn =
  | { readonly kind: "accepted" }
  | { readonly kind: "absent"; readonly reason: string }
  | ({ readonly kind: "refused" } & Refusal);

/**
 * Returns `accepted` if at least one server accepts the process. Otherwise, returns `refused` if at
 * least one server rejects it. Never rejects.
 */
export async function signIn(access: NatsAccess, timeoutMs: number): Promise<SignIn> {
  const unreadable = unreadableFile(access);
  if (unreadable !== undefined) return unreadable;
  const options = accessOptions(access);
  const answers = (options.servers as string[]).map((server) =>
    ask({ ...options, servers: [server] }, access, timeoutMs),
  );
  try {
    return await Promise.any(
      answers.map(async (one) => {
        const answer = await one;
        if (answer.kind !== "accepted") throw new Error("not accepted");
        return answer;
      }),
    );
  } catch {
    const all = await Promise.all(answers);
    return all.find(({ kind }) => kind === "refused") ?? all[0]!;
  }
}

export async function connectOnce(
  access: NatsAccess,
  { timeoutMs, ...options }: { readonly timeoutMs: number } & Partial<ConnectionOptions>,
): Promise<NatsConnection> {
  const answer = await signIn(access, timeoutMs);
  if (answer.kind === "refused") throw new NatsRefusedError(answer);
  if (answer.kind === "absent") throw new Error(answer.reason);
  return await connectClient({
    ...accessOptions(access),
    timeout: timeoutMs,
    maxReconnectAttempts: -1,
    ...options,
  });
}

/**
 * Makes the client retry after a temporary rejection. Call this only after the first connect,
 * because the first connect must fail if it is rejected.
 */
export function outlastRefusals(connection: NatsConnection): void {
  if (connection instanceof NatsConnectionImpl)
    connection.protocol.options.ignoreAuthErrorAbort = true;
}

export const withoutJetStream: Reason = {
  reason: "this nats-server runs without JetStream",
  fix: "start it with --jetstream, or with a `jetstream` block",
};

/**
 * Returns the reason if the account has no JetStream, or if the user lacks a permission. Returns
 * undefined for any other error.
 */
export function apiRefusal(error: unknown, access: NatsAccess): Reason | undefined {
  const user = `the user in ${signsInBy(access)?.setting ?? "PENSTOCK_NATS_URL"}`;
  const noAccount = causesOf(error).find((one) => isApiError(one, apiCodes.notEnabledForAccount));
  if (noAccount !== undefined) {
    const fix = `enable JetStream in nats-server for the account of ${user}, or use a user of another account`;
    return { reason: `the account has no JetStream (${noAccount.message})`, fix };
  }
  const violation = violationIn(error);
  if (violation === undefined) return undefined;
  const fix = `give ${user} this permission in nats-server`;
  return { reason: `the user lacks a permission (${violation.message})`, fix };
}

export function violationIn(error: unknown): PermissionViolationError | undefined {
  return causesOf(error).find((one) => one instanceof PermissionViolationError);
}

function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

/**
 * Maximum number of attempts. Several are necessary, because a server that rejects may close the
 * connection before the client has read the reason.
 */
const closedTriesMax = 6;

async function ask(
  options: ConnectionOptions,
  access: NatsAccess,
  timeoutMs: number,
): Promise<SignIn> {
  const [server] = options.servers as string[];
  const endMs = performance.now() + timeoutMs;
  for (let tries = 1; ; tries++) {
    try {
      const connection = await connectClient({
        ...options,
        name: "penstock sign-in",
        timeout: Math.max(1, endMs - performance.now()),
        reconnect: false,
        ignoreClusterUpdates: true,
      });
      await connection.close();
      return { kind: "accepted" };
    } catch (error) {
      const refusal = refusalOf(error as NodeJS.ErrnoException, access);
      if (refusal !== undefined) return { kind: "refused", server: server!, ...refusal };
      if (wasClosed(error) && tries < closedTriesMax) continue;
      return { kind: "absent", reason: `${server}: ${absentReason(error, timeoutMs)}` };
    }
  }
}

function refusalOf(error: NodeJS.ErrnoException, access: NatsAccess): Reason | undefined {
  if (/(route|leaf ?node|gateway) port/i.test(error.message)) {
    const fix = "set PENSTOCK_NATS_URL to the client port, 4222 by default";
    return { reason: `this is not a client port (${error.message})`, fix };
  }
  const tls = tlsRefusal(error, access);
  if (tls !== undefined) return tls;
  if (error.code === undefined && /violation|expired|revoked/i.test(error.message))
    return rejected(error.message, access);
  if (error instanceof ConnectionError && error.message.includes("'tls'")) return noTls(access);
  return undefined;
}

function wasClosed(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ECONNRESET" || code === "EPIPE" || message.includes("undefined error");
}

function absentReason(error: unknown, timeoutMs: number): string {
  const { message } = error as Error;
  if (error instanceof TimeoutError)
    return `timeout: no response within ${timeoutMs} ms (a server with \`handshake_first\` is not supported)`;
  if (wasClosed(error))
    return "the server closed the connection: it may have reached its connection limit, or this may not be its client port";
  if (message === "unexpected response from server")
    return "the response is not from a nats-server";
  return message;
}

type Reason = Omit<Refusal, "server">;

function rejected(error: string, access: NatsAccess): Reason {
  const way = signsInBy(access);
  if (way !== undefined)
    return { reason: `the server rejects ${way.what} (${error})`, fix: `correct ${way.setting}` };
  if (access.natsCert !== undefined) {
    const reason = `the server has no user for the client certificate (${error})`;
    return { reason, fix: "correct PENSTOCK_NATS_CERT, or set credentials" };
  }
  return {
    reason: `the server requires credentials (${error})`,
    fix: "set PENSTOCK_NATS_TOKEN, or user:password@ in PENSTOCK_NATS_URL, or PENSTOCK_NATS_CREDS to a credentials file (a user with a bare nkey is not supported)",
  };
}

function noTls(access: NatsAccess): Reason {
  const settings = tlsSettings(access);
  return {
    reason: `${settings} requires TLS, but the server does not support it`,
    fix: `use nats:// in PENSTOCK_NATS_URL and unset PENSTOCK_NATS_CA and PENSTOCK_NATS_CERT, or add a \`tls\` block to the server's configuration`,
  };
}

const untrustedCodes = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "INVALID_CA",
];

function tlsRefusal(
  { code = "", message }: NodeJS.ErrnoException,
  access: NatsAccess,
): Reason | undefined {
  const demand = tlsSettings(access) === "" ? "the server requires TLS, but " : "";
  if (untrustedCodes.includes(code)) {
    const fix =
      access.natsCa === undefined
        ? "set PENSTOCK_NATS_CA to the certificate of the authority that signed it"
        : "add the certificate of the authority that signed it to PENSTOCK_NATS_CA";
    return { reason: `${demand}its certificate is not trusted (${message})`, fix };
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const fix = "use a name in PENSTOCK_NATS_URL that is in the server's certificate";
    return { reason: `the host does not match the server's certificate (${message})`, fix };
  }
  if (code.startsWith("CERT_")) {
    const fix = "renew the certificate of nats-server, and check the clock of this machine";
    return { reason: `${demand}its certificate is not valid (${message})`, fix };
  }
  if (!code.startsWith("ERR_SSL")) return undefined;
  if (!/_ALERT_/.test(code))
    return {
      reason: `the TLS handshake fails (${message})`,
      fix: "check the `tls` block of nats-server",
    };
  const alert = message.split(":").slice(-2, -1)[0] ?? message;
  return access.natsCert === undefined
    ? {
        reason: `the server requires a client certificate (${alert})`,
        fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY",
      }
    : {
        reason: `the server rejects the client certificate (${alert})`,
        fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY to a pair that a CA in its `ca_file` signed",
      };
}

function unreadableFile(access: NatsAccess): SignIn | undefined {
  const files: [setting: string, read: () => unknown][] = [
    ["PENSTOCK_NATS_CREDS", () => signed(accessOptions(access))],
    ["PENSTOCK_NATS_CA", () => access.natsCa && readFileSync(access.natsCa)],
    [
      "PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY",
      () =>
        createSecureContext({
          cert: access.natsCert && readFileSync(access.natsCert),
          key: access.natsKey && readFileSync(access.natsKey),
        }),
    ],
  ];
  for (const [setting, read] of files)
    try {
      read();
    } catch (error) {
      const { message } = error as Error;
      return {
        kind: "refused",
        server: shownUrls(access.natsUrl),
        reason: `the file in ${setting} cannot be used (${message})`,
        fix: `correct ${setting}`,
      };
    }
  return undefined;
}

/** Signs a sample text, because the authenticator parses the credentials only when it signs. */
function signed({ authenticator }: ConnectionOptions): void {
  if (typeof authenticator === "function") authenticator("nonce");
}
