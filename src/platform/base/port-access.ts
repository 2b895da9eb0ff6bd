// Checks the tokens of the operators' ports: admin, effects and sink. There are two kinds: the
// read-only token for numbers (metrics, status, usage), and the admin token for everything. A
// request of this program itself is signed with a token, and does not contain it.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isLoopback } from "./own-host.ts";

export const accessProblems = {
  missing_token: {
    status: 401,
    title: "No token was sent",
    detail: "send one of the port's tokens, as Authorization: Bearer <token>",
  },
  invalid_token: {
    status: 401,
    title: "Invalid token",
    detail:
      "the token is neither PENSTOCK_ADMIN_TOKEN nor PENSTOCK_READ_TOKEN of this process, which reads token files at its start",
  },
  read_only_token: {
    status: 403,
    title: "The read-only token does not permit this",
    detail:
      "it reads metrics, status and usage; events, people, groups and every change need the admin token (PENSTOCK_ADMIN_TOKEN)",
  },
} as const;

export type AccessCode = keyof typeof accessProblems;

export type NeededToken = "read" | "admin";

interface TokenSettings {
  readonly adminAuth: "auto" | "off";
  readonly adminToken?: string | undefined;
  readonly adminTokenFile?: readonly string[] | undefined;
  readonly readToken?: string | undefined;
  readonly readTokenFile?: readonly string[] | undefined;
}

/**
 * Returns the tokens from the settings. When the program itself sends requests, it uses the first
 * token of each kind.
 */
export function tokensOf(settings: TokenSettings): Record<NeededToken, readonly string[]> {
  const { adminAuth, adminToken, adminTokenFile, readToken, readTokenFile } = settings;
  if (adminAuth === "off") return { admin: [], read: [] };
  return {
    admin: adminToken === undefined ? (adminTokenFile ?? []) : [adminToken],
    read: readToken === undefined ? (readTokenFile ?? []) : [readToken],
  };
}

/** Returns the headers that authorize a GET request of this program. */
export type Sign = (target: URL) => Readonly<Record<string, string>>;

/**
 * Returns how a process authorizes its requests to a port of the same settings. Any program of the
 * host may listen on that port, so it gets a signature of the path and the time in place of the
 * token. The signature permits only this request, for a minute.
 */
export function ownSignature(settings: TokenSettings): Sign {
  const { admin, read } = tokensOf(settings);
  const token = admin[0] ?? read[0];
  if (token === undefined) return () => ({});
  const key = digestOf(token);
  return ({ pathname, search }) => {
    const time = Math.floor(Date.now() / 1_000);
    const signature = signatureOf(key, time, pathname + search).toString("hex");
    return { Authorization: `${signedScheme} ${time}:${signature}` };
  };
}

const signedScheme = "Penstock-Signature";
const signedSecondsMax = 60;

function signatureOf(key: Buffer, time: number, path: string): Buffer {
  return createHmac("sha256", key).update(`GET ${path} ${time}`).digest();
}

export type Exposure =
  /** The port is only reachable from this machine, or it requires a token. */
  | "protected"
  /** The port is reachable from other hosts and no token is set. The process must not start. */
  | "lacks token"
  /** The port is reachable from other hosts without a token. PENSTOCK_ADMIN_AUTH=off permits it. */
  | "open";

export function exposureOf(host: string, settings: TokenSettings): Exposure {
  const { admin, read } = tokensOf(settings);
  if (isLoopback(host) || admin.length + read.length > 0) return "protected";
  return settings.adminAuth === "off" ? "open" : "lacks token";
}

type Authorized = Pick<IncomingMessage, "headers" | "method" | "url">;

export class PortAccess {
  readonly #digests: Readonly<Record<NeededToken, readonly Buffer[]>>;
  readonly #isFree: boolean;

  constructor({ admin, read }: Record<NeededToken, readonly string[]>) {
    this.#digests = { admin: admin.map(digestOf), read: read.map(digestOf) };
    this.#isFree = admin.length + read.length === 0;
  }

  get needsToken(): boolean {
    return !this.#isFree;
  }

  /** Returns why the token of a request is not sufficient; undefined if it is sufficient. */
  problemOf(request: Authorized, needed: NeededToken): AccessCode | undefined {
    if (this.#isFree) return undefined;
    if (request.headers.authorization === undefined) return "missing_token";
    const isProven = proofIn(request);
    // `filter` takes the same time for every token.
    const isAdmin = this.#digests.admin.filter(isProven).length > 0;
    const isReader = this.#digests.read.filter(isProven).length > 0;
    if (isAdmin || (isReader && needed === "read")) return undefined;
    return isReader ? "read_only_token" : "invalid_token";
  }
}

/** Returns whether the request proves that its client has the token of a digest. */
function proofIn({ headers, method, url = "" }: Authorized): (digest: Buffer) => boolean {
  const [, scheme = "", proof = ""] = /^(\S+) +(\S+) *$/.exec(headers.authorization ?? "") ?? [];
  if (/^Bearer$/i.test(scheme)) {
    const sent = digestOf(proof);
    return (digest) => timingSafeEqual(digest, sent);
  }
  const [, time, signature = ""] = /^(\d{1,12}):([0-9a-f]{64})$/.exec(proof) ?? [];
  const isNow = Math.abs(Date.now() / 1_000 - Number(time)) <= signedSecondsMax;
  if (scheme !== signedScheme || method !== "GET" || !isNow) return () => false;
  const sent = Buffer.from(signature, "hex");
  return (digest) => timingSafeEqual(signatureOf(digest, Number(time), url), sent);
}

/** Answers a request without a sufficient token. */
export function refuseAccess(response: ServerResponse, code: AccessCode): void {
  const { status, title, detail } = accessProblems[code];
  const body = { type: "about:blank", title, status, code, detail };
  response
    .writeHead(status, {
      "Content-Type": "application/problem+json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      ...challengeOf(status),
    })
    .end(`${JSON.stringify(body)}\n`);
}

export function challengeOf(status: number): Readonly<Record<string, string>> {
  return status === 401 ? { "WWW-Authenticate": 'Bearer realm="penstock"' } : {};
}

/** Tokens are hashed, because timingSafeEqual can only compare values of the same length. */
function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
