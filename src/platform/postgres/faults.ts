import { DatabaseError } from "pg";
import { StoreError, TooSlowError } from "../base/store-error.ts";

const hints: Readonly<Record<string, string>> = {
  "28P01": "wrong user or password",
  "28000": "the server rejects this user",
  "3D000": "the database does not exist: create it, and grant it to the user",
  "42501": "the user lacks a privilege: grant it",
  "53300":
    "the server has reached its connection limit: raise max_connections, or close connections",
  "53100": "the server's disk is full",
  "55000": "the server or the database accepts no connections now",
  "57014": "the statement timed out",
  "57P01": "the server is being shut down",
  "57P03": "the server is starting or shutting down",
  "25006":
    "the server is a standby, or the user, the database or the server has default_transaction_read_only: use the primary, or allow writes",
  ECONNREFUSED: "no server is listening: check host and port",
  ECONNRESET: "the connection was closed",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the host cannot be reached",
  ENOENT: "the socket does not exist: check the folder in host",
  EACCES: "this user may not open the socket",
  ENOTFOUND: "unknown host: check its name",
  EAI_AGAIN: "the host name cannot be resolved now: check the name and the DNS server",
  ETIMEDOUT: "no response",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server's certificate is not trusted: add it to sslrootcert",
  SELF_SIGNED_CERT_IN_CHAIN:
    "the server's certificate is not trusted: add its authority to sslrootcert",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate is not trusted: add its authority to sslrootcert",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the server's certificate is not trusted: add its authority to sslrootcert",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate does not match the host in the URL",
};

const hintsByRoutine: Readonly<Record<string, string>> = {
  "28000 ClientAuthentication":
    "the server's pg_hba.conf has no entry for this user, host, database and TLS mode",
  "28000 InitializeSessionUserId":
    "the role does not exist, or may not log in: CREATE ROLE, or ALTER ROLE … LOGIN",
  "42501 CheckMyDatabase":
    "the user may not connect to the database: GRANT CONNECT ON DATABASE … TO …",
  "53300 InitializeSessionUserId":
    "the role has reached its connection limit: ALTER ROLE … CONNECTION LIMIT, or close connections",
  "53300 CheckMyDatabase":
    "the database has reached its connection limit: ALTER DATABASE … CONNECTION LIMIT, or close connections",
  "55000 CheckMyDatabase":
    "the database accepts no connections: ALTER DATABASE … ALLOW_CONNECTIONS",
};

const hintsByMessage: readonly (readonly [RegExp, string])[] = [
  [
    /server does not support SSL/,
    "the server does not support TLS: enable TLS on the server, or use sslmode=prefer or sslmode=disable",
  ],
  [/client password must be a/, "the server requires a password, but the URL has none"],
  [/timeout expired|connection timeout/i, "no response"],
];

const [tooSlow, answerTooLate] = ["57014", "Query read timeout"];

interface Failed {
  readonly doing: string;
  readonly shown: string;
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
  return new Kind(`cannot ${doing} in PostgreSQL at ${shown}: ${text}`, { cause: error });
}

interface ErrorFacts {
  readonly message: string;
  readonly code?: string | undefined;
  readonly routine?: string | undefined;
}

function firstOf(error: unknown): ErrorFacts {
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(one instanceof Error)) return { message: String(one) };
  const { code, routine } = one as Partial<ErrorFacts>;
  return { message: one.message, code, routine };
}

export function leavesConnection(error: unknown): boolean {
  if (error instanceof StoreError) return true;
  return error instanceof DatabaseError && !/^(08|57P|F0|58|XX)/.test(error.code ?? "");
}
