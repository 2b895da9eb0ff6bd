// What PostgreSQL and its client say when something fails, in words for people: what was tried,
// what is wrong, and what to do. Nothing of a URL's password is ever in them.

import { DatabaseError } from "pg";
import { StoreError, TooSlowError } from "../base/store-error.ts";

/** By SQLSTATE, or by the system's code. */
const hints: Readonly<Record<string, string>> = {
  "28P01": "user or password is not accepted",
  "28000": "the server lets this user not in from here: see its pg_hba.conf",
  "3D000": "there is no such database: create it, and give it to the user",
  "53300": "the server has no connection left",
  "53100": "the server's disk is full",
  "57014": "it took too long",
  "57P01": "the server is being shut down",
  "57P03": "the server is starting or shutting down",
  "25006": "the server is a standby, or read-only",
  ECONNREFUSED: "nobody listens there",
  ENOTFOUND: "there is no such host",
  ETIMEDOUT: "no answer",
};

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
  const { message, code } = firstOf(error);
  const hint = code === undefined ? undefined : (own[code] ?? hints[code]);
  const said = message === "" ? (code ?? "no reason given") : message;
  const text = hint === undefined ? said : `${hint} (${said})`;
  const isSlow = code === tooSlow || message === answerTooLate;
  const Kind = isSlow ? TooSlowError : StoreError;
  return new Kind(`${doing} in PostgreSQL at ${shown}: ${text}`, { cause: error });
}

/** A host with several addresses fails once for each. */
function firstOf(error: unknown): { message: string; code: string | undefined } {
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(one instanceof Error)) return { message: String(one), code: undefined };
  return { message: one.message, code: (one as { code?: string }).code };
}

/**
 * Whether the connection still serves after this error: only where the server itself has refused a
 * statement, and not because it ends.
 */
export function leavesConnection(error: unknown): boolean {
  if (error instanceof StoreError) return true;
  return error instanceof DatabaseError && !/^(08|57P|F0|58|XX)/.test(error.code ?? "");
}
