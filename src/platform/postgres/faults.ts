// What PostgreSQL and its client say when something fails, in words for people: what was tried,
// what is wrong, and what to do. Nothing of a URL's password is ever in them.

import { DatabaseError } from "pg";
import { StoreError, TooSlowError } from "../base/store-error.ts";

/** By SQLSTATE, or by the code of the system or of TLS. */
const hints: Readonly<Record<string, string>> = {
  "28P01": "user or password is not accepted",
  "28000": "the server does not let this user in",
  "3D000": "there is no such database: create it, and give it to the user",
  "42501": "the user may not do this: grant it the privilege",
  "53300": "the server has no connection left: raise max_connections, or close some",
  "53100": "the server's disk is full",
  "55000": "the server or the database takes no connections now",
  "57014": "it took too long",
  "57P01": "the server is being shut down",
  "57P03": "the server is starting or shutting down",
  "25006":
    "the server is a standby, or the user, the database or the server has default_transaction_read_only: name the primary, or allow writes",
  ECONNREFUSED: "no server listens there: check host and port",
  ECONNRESET: "the connection was closed",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the host cannot be reached",
  ENOENT: "there is no such socket: check the folder in host",
  EACCES: "the socket may not be opened by this user",
  ENOTFOUND: "there is no such host: check its name",
  EAI_AGAIN: "the host's name cannot be resolved now: check the name and the DNS server",
  ETIMEDOUT: "no answer",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server's certificate is not trusted: name it in sslrootcert",
  SELF_SIGNED_CERT_IN_CHAIN:
    "the server's certificate is not trusted: name its authority in sslrootcert",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate is not trusted: name its authority in sslrootcert",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the server's certificate is not trusted: name its authority in sslrootcert",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another name than the URL has",
};

/**
 * One code stands for several faults. The server's routine tells them apart in every language of its
 * messages.
 */
const hintsByRoutine: Readonly<Record<string, string>> = {
  "28000 ClientAuthentication":
    "the server's pg_hba.conf has no entry for this user, host and database, with or without TLS as it came",
  "28000 InitializeSessionUserId":
    "there is no such role, or it may not log in: CREATE ROLE, or ALTER ROLE … LOGIN",
  "42501 CheckMyDatabase":
    "the user may not connect to the database: GRANT CONNECT ON DATABASE … TO it",
  "53300 InitializeSessionUserId":
    "the role has no connection left: ALTER ROLE … CONNECTION LIMIT, or close some",
  "53300 CheckMyDatabase":
    "the database has no connection left: ALTER DATABASE … CONNECTION LIMIT, or close some",
  "55000 CheckMyDatabase": "the database takes no connections: ALTER DATABASE … ALLOW_CONNECTIONS",
};

/** What the client says has no code. */
const hintsByMessage: readonly (readonly [RegExp, string])[] = [
  [
    /server does not support SSL/,
    "the server offers no TLS: turn it on there, or use sslmode=prefer or sslmode=disable",
  ],
  [/client password must be a/, "the server asks for a password, and the URL has none"],
  [/timeout expired|connection timeout/i, "no answer"],
];

/** How the server, and how the client, says that a statement took too long. */
const [tooSlow, answerTooLate] = ["57014", "Query read timeout"];

interface Failed {
  /** What was tried, as "commit". */
  readonly doing: string;
  readonly shown: string;
  /** What to do is another thing for each program: its own words, by the same codes. */
  readonly hints: Readonly<Record<string, string>>;
}

export function storeErrorOf(error: unknown, failed: Failed): Error {
  const { doing, shown, hints: own } = failed;
  if (error instanceof StoreError) return error;
  const { message, code, routine } = firstOf(error);
  const hint =
    hintsByRoutine[`${code} ${routine}`] ??
    own[code ?? ""] ??
    hints[code ?? ""] ??
    hintsByMessage.find(([said]) => said.test(message))?.[1];
  const said = message === "" ? (code ?? "no reason given") : message;
  const text = hint === undefined ? said : `${hint} (${said})`;
  const isSlow = code === tooSlow || message === answerTooLate;
  const Kind = isSlow ? TooSlowError : StoreError;
  return new Kind(`${doing} in PostgreSQL at ${shown}: ${text}`, { cause: error });
}

interface SaidOfError {
  readonly message: string;
  readonly code?: string | undefined;
  /** That of the server. */
  readonly routine?: string | undefined;
}

/** A host with several addresses fails once for each. */
function firstOf(error: unknown): SaidOfError {
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(one instanceof Error)) return { message: String(one) };
  const { code, routine } = one as Partial<SaidOfError>;
  return { message: one.message, code, routine };
}

/**
 * Whether the connection still serves after this error: only where the server itself has refused a
 * statement, and not because it ends.
 */
export function leavesConnection(error: unknown): boolean {
  if (error instanceof StoreError) return true;
  return error instanceof DatabaseError && !/^(08|57P|F0|58|XX)/.test(error.code ?? "");
}
