// Asks each configured server once whether it accepts this process, with a short connection of its
// own. The NATS client must not be asked about several servers at once: in a cluster that rejects
// its first connection it goes on to the next server for ever, without a pause, and it hides TLS
// errors while it reconnects.

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

/** A server answered, and waiting does not help: the settings or the server must change. */
export class NatsRefusedError extends Error {
  override name = "NatsRefusedError";
  readonly server: string;
  readonly reason: string;
  /** Which setting to change, and how. */
  readonly fix: string;

  constructor({ server, reason, fix }: Refusal) {
    super(`connect to NATS at ${server}: ${reason}. Fix: ${fix}`);
    this.server = server;
    this.reason = reason;
    this.fix = fix;
  }
}

/** What is known of a server that did not accept this process. */
interface Refusal {
  /** `host:port`, or what the message is about instead. */
  readonly server: string;
  readonly reason: string;
  readonly fix: string;
}

type SignIn =
  | { readonly kind: "accepted" }
  /** No server answers as one that runs: waiting may help. */
  | { readonly kind: "absent"; readonly reason: string }
  | ({ readonly kind: "refused" } & Refusal);

/**
 * `accepted` if one of the servers accepts this process; `refused` if one refuses and none accepts
 * it. A server that is slow counts as much as one that answers at once. Never rejects, and takes
 * about `timeoutMs` at most.
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

/**
 * A connection of the NATS client to a server that accepts this process. Rejects with a
 * NatsRefusedError if a server refuses it, with another error if none answers.
 */
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
 * Makes the connection outlast servers that refuse it for a while, such as during a rotation of the
 * token. That must not be set before it is connected: the client would not end its first attempt.
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
 * What an answer of JetStream means that waiting does not help with: the account has no JetStream,
 * or the user lacks a permission. Undefined for any other error.
 */
export function apiRefusal(error: unknown, access: NatsAccess): Reason | undefined {
  const user = `the user that ${signsInBy(access)?.setting ?? "PENSTOCK_NATS_URL"} names`;
  const noAccount = causesOf(error).find((one) => isApiError(one, apiCodes.notEnabledForAccount));
  if (noAccount !== undefined) {
    const fix = `enable JetStream in nats-server for the account of ${user}, or name a user of another account`;
    return { reason: `the account has no JetStream (${noAccount.message})`, fix };
  }
  const violation = violationIn(error);
  if (violation === undefined) return undefined;
  const fix = `give ${user} this permission in nats-server`;
  return { reason: `the user lacks a permission (${violation.message})`, fix };
}

/** The violation of a permission that the error is, or was caused by. */
export function violationIn(error: unknown): PermissionViolationError | undefined {
  return causesOf(error).find((one) => one instanceof PermissionViolationError);
}

/** The error and what caused it, which the clients of NATS and JetStream wrap. */
function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

/**
 * A server that rejects the client certificate closes the connection, and in about half of the
 * cases before its reason is read: then it is asked again.
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

/** Undefined if waiting may help. */
function refusalOf(error: NodeJS.ErrnoException, access: NatsAccess): Reason | undefined {
  if (/(route|leaf ?node|gateway) port/i.test(error.message)) {
    const fix = "set PENSTOCK_NATS_URL to the port for clients, 4222 by default";
    return { reason: `this port is not for clients (${error.message})`, fix };
  }
  const tls = tlsRefusal(error, access);
  if (tls !== undefined) return tls;
  // Not an `authentication timeout`, which ends by itself.
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
    return `timeout: no answer within ${timeoutMs} ms (a server with \`handshake_first\` sends none, and is not supported)`;
  if (wasClosed(error))
    return "the server closed the connection: it may have no room for more, or this may not be its port for clients";
  if (message === "unexpected response from server") return "does not answer as a nats-server";
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
    reason: `${settings} asks for TLS, and the server does not support TLS`,
    fix: `use nats:// in PENSTOCK_NATS_URL and unset PENSTOCK_NATS_CA and PENSTOCK_NATS_CERT, or give the server a \`tls\` block`,
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

/** Undefined if the error is not one of TLS, or may pass. */
function tlsRefusal(
  { code = "", message }: NodeJS.ErrnoException,
  access: NatsAccess,
): Reason | undefined {
  const demand = tlsSettings(access) === "" ? "the server requires TLS, and " : "";
  if (untrustedCodes.includes(code)) {
    const fix =
      access.natsCa === undefined
        ? "set PENSTOCK_NATS_CA to the certificate of the authority that signed it"
        : "PENSTOCK_NATS_CA must have the certificate of the authority that signed it";
    return { reason: `${demand}its certificate is not trusted (${message})`, fix };
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const fix = "use a name in PENSTOCK_NATS_URL that the server's certificate has";
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
  // The server sends an alert when it rejects our side of the handshake.
  const alert = message.split(":").slice(-2, -1)[0] ?? message;
  return access.natsCert === undefined
    ? {
        reason: `the server requires a client certificate (${alert})`,
        fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY",
      }
    : {
        reason: `the server rejects the client certificate (${alert})`,
        fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY to a pair that its `ca_file` signed",
      };
}

/** Why a file that a setting names cannot be used. */
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
        ...{ kind: "refused", server: shownUrls(access.natsUrl) },
        ...{
          reason: `the file of ${setting} cannot be used (${message})`,
          fix: `correct ${setting}`,
        },
      };
    }
  return undefined;
}

/** Signs a made-up nonce: only then are the credentials parsed. */
function signed({ authenticator }: ConnectionOptions): void {
  if (typeof authenticator === "function") authenticator("nonce");
}
