// Asks each configured server once whether it accepts this process, with a short connection of its
// own. The NATS client cannot tell: it reports a rejected client certificate as a timeout, hides
// failures of TLS while it reconnects, and in a cluster that rejects its first connection it goes
// on to the next server for ever, without a pause.

import { readFileSync } from "node:fs";
import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions as TlsConnectionOptions, connect as tlsConnect } from "node:tls";
import {
  type Auth,
  type ConnectionOptions,
  type NatsConnection,
  PermissionViolationError,
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

const infoBytesMax = 1_048_576;

/**
 * `accepted` if one of the servers accepts this process; `refused` if one refuses and none accepts
 * it. A server that is slow counts as much as one that answers at once. Never rejects, and takes
 * about `timeoutMs` at most.
 */
export async function signIn(access: NatsAccess, timeoutMs: number): Promise<SignIn> {
  let options: ConnectionOptions;
  try {
    options = accessOptions(access);
  } catch (error) {
    return unreadable("PENSTOCK_NATS_CREDS", access, error);
  }
  const abort = new AbortController();
  const places = options.servers as readonly string[];
  const question: Question = { access, options, timeoutMs, signal: abort.signal };
  const answers = places.map((place) => ask(place, question));
  const accepted = answers.map(async (one) => {
    const answer = await one;
    if (answer.kind !== "accepted") throw new Error("not accepted");
    return answer;
  });
  try {
    return await Promise.any(accepted);
  } catch {
    const all = await Promise.all(answers);
    return all.find(({ kind }) => kind === "refused") ?? all[0]!;
  } finally {
    abort.abort();
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

interface Question {
  readonly access: NatsAccess;
  readonly options: ConnectionOptions;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The part of the INFO line that is used here. */
interface ServerInfo {
  readonly nonce?: string;
  readonly headers?: boolean;
  readonly tls_required?: boolean;
  readonly tls_available?: boolean;
  readonly tls_verify?: boolean;
}

/** Thrown within this file to end a question with its answer. */
class Answer extends Error {
  readonly answer: SignIn;

  constructor(answer: SignIn) {
    super();
    this.answer = answer;
  }
}

async function ask(place: string, question: Question): Promise<SignIn> {
  const { access, options, timeoutMs, signal } = question;
  const { host, port } = addressOf(place);
  const server = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const absent = (reason: string): SignIn => ({ kind: "absent", reason: `${server}: ${reason}` });
  let phase: "connect" | "info" | "handshake" | "sign in" = "connect";
  let info: ServerInfo = {};
  const plain = connect({ host, port });
  let socket: Socket = plain;
  const ends = new Set<() => void>();
  const end = (): void => {
    for (const one of ends) one();
    socket.destroy();
    plain.destroy();
  };
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, timeoutMs);
  signal.addEventListener("abort", end, { once: true });
  try {
    await once(plain, "connect");
    phase = "info";
    const lines = lineReader(plain);
    ends.add(lines.end);
    const first = await lines.next();
    const json = /^INFO (\{.*\})\s*$/i.exec(first)?.[1];
    if (json === undefined) return absent(`does not answer as a nats-server: ${shown(first)}`);
    info = JSON.parse(json) as ServerInfo;
    const isOffered = info.tls_required === true || info.tls_available === true;
    if (options.tls && !isOffered) return { kind: "refused", server, ...noTls(access) };
    phase = "handshake";
    if (isOffered) {
      lines.end();
      socket = await handshake(plain, host, { access, options });
    }
    phase = "sign in";
    const replies = isOffered ? lineReader(socket) : lines;
    ends.add(replies.end);
    socket.write(`CONNECT ${connectLine(info, question)}\r\nPING\r\n`);
    for (;;) {
      const line = await replies.next();
      if (/^PONG/i.test(line)) return { kind: "accepted" };
      const error = /^-ERR\s+'?(.*?)'?\s*$/i.exec(line)?.[1];
      if (error !== undefined)
        return isFinal(error)
          ? { kind: "refused", server, ...rejected(error, info, access) }
          : absent(error);
    }
  } catch (error) {
    if (error instanceof Answer) return error.answer;
    if (isLate) return absent(lateReason(phase, timeoutMs));
    const refusal = tlsRefusal(error as NodeJS.ErrnoException, { access, info, phase });
    if (refusal !== undefined) return { kind: "refused", server, ...refusal };
    return absent(textOf(error as NodeJS.ErrnoException));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    end();
  }
}

function lateReason(phase: string, timeoutMs: number): string {
  const late = `timeout: no answer within ${timeoutMs} ms`;
  if (phase !== "info") return late;
  return `${late} (a server with \`handshake_first\` sends none, and is not supported)`;
}

/** nats-server's default port. */
const portDefault = 4222;

function addressOf(place: string): { host: string; port: number } {
  const [, bracketed, plain = "", digits] =
    /^(?:\[(.*)\]|([^:]*))(?::(\d+))?\/?$/.exec(place) ?? [];
  // An IPv6 address without brackets.
  if (bracketed === undefined && plain === "" && isIP(place) === 6)
    return { host: place, port: portDefault };
  return { host: bracketed ?? plain, port: Number(digits ?? portDefault) };
}

function once(socket: Socket, event: "connect" | "secureConnect"): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the server closed the connection")));
    socket.once(event, resolve);
  });
}

interface LineReader {
  /** The next line. Rejects when the socket ends first. */
  next(): Promise<string>;
  /** Stops reading. */
  end(): void;
}

function lineReader(socket: Socket): LineReader {
  let text = "";
  let fault: Error | undefined;
  let wake = (): void => {};
  const take = (bytes: Buffer): void => {
    text += bytes.toString("latin1");
    if (text.length > infoBytesMax) fault = new Error("the server sends no line");
    wake();
  };
  const fail = (error: Error): void => {
    fault ??= error;
    wake();
  };
  const closed = (): void => fail(new Error("the server closed the connection"));
  socket.on("data", take).on("error", fail).on("close", closed);
  return {
    async next() {
      for (;;) {
        const end = text.indexOf("\r\n");
        if (end >= 0) {
          const line = text.slice(0, end);
          text = text.slice(end + 2);
          return line;
        }
        if (fault !== undefined) throw fault;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    end() {
      socket.off("data", take).off("close", closed);
      closed();
    },
  };
}

/** Rejects with Node's error, or with an Answer if our own files cannot be used. */
async function handshake(
  plain: Socket,
  host: string,
  { access, options }: Pick<Question, "access" | "options">,
): Promise<Socket> {
  const { checkServerIdentity } = (options.tls ?? {}) as TlsConnectionOptions;
  const tls: TlsConnectionOptions = {
    socket: plain,
    servername: isIP(host) === 0 ? host : "",
    ...(checkServerIdentity === undefined ? {} : { checkServerIdentity }),
    ...read("PENSTOCK_NATS_CA", "ca", access.natsCa, access),
    ...read("PENSTOCK_NATS_CERT", "cert", access.natsCert, access),
    ...read("PENSTOCK_NATS_KEY", "key", access.natsKey, access),
  };
  let socket: Socket;
  try {
    socket = tlsConnect(tls);
  } catch (error) {
    // Node throws at once when it cannot use a certificate or key.
    throw new Answer(unreadable("PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY", access, error));
  }
  await once(socket, "secureConnect");
  return socket;
}

function read(
  setting: string,
  name: "ca" | "cert" | "key",
  file: string | undefined,
  access: NatsAccess,
): TlsConnectionOptions {
  if (file === undefined) return {};
  try {
    return { [name]: readFileSync(file) };
  } catch (error) {
    throw new Answer(unreadable(setting, access, error));
  }
}

function connectLine(info: ServerInfo, { access, options }: Question): string {
  const { authenticator, tls } = options;
  let auth: Auth | undefined;
  try {
    auth = typeof authenticator === "function" ? authenticator(info.nonce) : undefined;
  } catch (error) {
    throw new Answer(unreadable("PENSTOCK_NATS_CREDS", access, error));
  }
  return JSON.stringify({
    ...{ name: "penstock sign-in", lang: "node", version: "0", protocol: 1 },
    ...{ verbose: false, pedantic: false, tls_required: tls !== undefined, ...auth },
  });
}

/**
 * Whether waiting cannot help. Others, such as `maximum connections exceeded` and `Authentication
 * Timeout`, end by themselves.
 */
function isFinal(error: string): boolean {
  return /violation|expired|revoked|tls required|(route|leaf ?node|gateway) port/i.test(error);
}

type Reason = Omit<Refusal, "server">;

function rejected(error: string, info: ServerInfo, access: NatsAccess): Reason {
  if (/port/i.test(error)) {
    const fix = "set PENSTOCK_NATS_URL to the port for clients, 4222 by default";
    return { reason: `this port is not for clients (${error})`, fix };
  }
  const way = signsInBy(access);
  if (way !== undefined)
    return { reason: `the server rejects ${way.what} (${error})`, fix: `correct ${way.setting}` };
  if (access.natsCert !== undefined) {
    const reason = `the server has no user for the client certificate (${error})`;
    return { reason, fix: "correct PENSTOCK_NATS_CERT, or set credentials" };
  }
  const ways =
    info.nonce === undefined
      ? "PENSTOCK_NATS_TOKEN, or user:password@ in PENSTOCK_NATS_URL, or PENSTOCK_NATS_CREDS"
      : "PENSTOCK_NATS_CREDS to a credentials file (a user with a bare nkey is not supported), or PENSTOCK_NATS_TOKEN, or user:password@ in PENSTOCK_NATS_URL";
  return { reason: `the server requires credentials (${error})`, fix: `set ${ways}` };
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

interface TlsFault {
  readonly access: NatsAccess;
  readonly info: ServerInfo;
  readonly phase: string;
}

/** Undefined if the error is not one of TLS, or may pass. */
function tlsRefusal(
  error: NodeJS.ErrnoException,
  { access, info, phase }: TlsFault,
): Reason | undefined {
  const { code = "", message } = error;
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
  // With TLS 1.3 the server looks at our certificate when our side of the handshake is over, and it
  // may close the connection before its alert is read.
  const isOwn = info.tls_verify === true && (phase === "handshake" || phase === "sign in");
  const isAlert = code.startsWith("ERR_SSL");
  const isOver = phase === "sign in" || isAlert;
  if (isOwn && isOver) {
    const alert = isAlert ? ` (${message.split(":").slice(-2, -1)[0] ?? message})` : "";
    return access.natsCert === undefined
      ? {
          reason: `the server requires a client certificate${alert}`,
          fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY",
        }
      : {
          reason: `the server rejects the client certificate${alert}`,
          fix: "set PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY to a pair that its `ca_file` signed",
        };
  }
  if (!isAlert) return undefined;
  return {
    reason: `the TLS handshake fails (${message})`,
    fix: "check the `tls` block of nats-server",
  };
}

function unreadable(setting: string, access: NatsAccess, error: unknown): SignIn {
  const { message } = error as Error;
  return {
    ...{ kind: "refused", server: shownUrls(access.natsUrl) },
    ...{ reason: `the file of ${setting} cannot be used (${message})`, fix: `correct ${setting}` },
  };
}

function textOf(error: NodeJS.ErrnoException): string {
  if (error instanceof AggregateError) return textOf(error.errors[0] as NodeJS.ErrnoException);
  return error.code === "ECONNREFUSED" ? "connection refused" : error.message;
}

function shown(line: string): string {
  return JSON.stringify(line.slice(0, 80));
}
