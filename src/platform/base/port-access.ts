// Checks the tokens of the ports for operators. The read-only token permits access to metrics,
// status and usage. The admin token permits everything.

import { createHash, timingSafeEqual } from "node:crypto";
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

export function ownAuthorization(settings: TokenSettings): Readonly<Record<string, string>> {
  const { admin, read } = tokensOf(settings);
  const token = admin[0] ?? read[0];
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
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

type Authorized = Pick<IncomingMessage, "headers">;

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

  problemOf({ headers }: Authorized, needed: NeededToken): AccessCode | undefined {
    if (this.#isFree) return undefined;
    const { authorization } = headers;
    if (authorization === undefined) return "missing_token";
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token === undefined) return "invalid_token";
    const digest = digestOf(token);
    const isAdmin = isOneOf(digest, this.#digests.admin);
    const isReader = isOneOf(digest, this.#digests.read);
    if (isAdmin || (isReader && needed === "read")) return undefined;
    return isReader ? "read_only_token" : "invalid_token";
  }
}

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

function isOneOf(digest: Buffer, digests: readonly Buffer[]): boolean {
  return digests.filter((known) => timingSafeEqual(known, digest)).length > 0;
}
