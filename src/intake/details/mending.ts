// What is found out of a request only once it is refused, so that whoever made the mistake finds
// it: a name that looks like a slip, and which SDK it was. Decides nothing.

import type { Buffer } from "node:buffer";
import type { Problem } from "../../base/errors.ts";
import type { ClientWarningTaker, Exchange } from "../../base/types.ts";
import { Header, type Scanner, TokenType } from "../../scan/table.ts";
import { libraryOf } from "../library.ts";
import { keyInBodyHint, missingKeyHint } from "./key-details.ts";
import type { Slips } from "./slips.ts";

interface Scanned {
  readonly body: Buffer;
  /** Holds the table of the body. */
  readonly scanner: Pick<Scanner, "table">;
}

export interface Mending {
  /** Tells the exchange which SDK made the body, while a warning on it would be kept. */
  noteLibrary(exchange: Exchange, scanned: Scanned): void;
  /**
   * The problem that the envelope has, with what looks like the key where none came, or like the
   * batch.
   */
  ofEnvelope(problem: Problem, exchange: Exchange, scanned: Scanned): Problem;
}

export function createMending(
  slips: Slips,
  clientWarnings: ClientWarningTaker | undefined,
): Mending {
  function noteLibrary(exchange: Exchange, { body, scanner }: Scanned): void {
    if (clientWarnings?.hasRoom) exchange.library = libraryOf(body, scanner.table);
  }

  function ofEnvelope(problem: Problem, exchange: Exchange, scanned: Scanned): Problem {
    // Of a body that is neither, the table says nothing more.
    const root = scanned.scanner.table[Header.RootType];
    if (root !== TokenType.Object && root !== TokenType.Array) return problem;
    noteLibrary(exchange, scanned);
    const hint = hintOf(problem, exchange, scanned);
    return hint === "" ? problem : { ...problem, detail: `${problem.detail}; ${hint}` };
  }

  function hintOf(problem: Problem, exchange: Exchange, { body, scanner }: Scanned): string {
    const { table } = scanner;
    if (exchange.v1 === undefined) {
      return problem.code === "missing_api_key" ? missingKeyHint(body, table, slips) : "";
    }
    if (problem.code === "missing_api_key") return keyInBodyHint(body, table, slips);
    const lacksBatch =
      problem.code === "invalid_payload" && table[Header.BatchType] === TokenType.Absent;
    return lacksBatch ? slips.hint({ body, start: 0, end: body.length }, "batch") : "";
  }

  return { noteLibrary, ofEnvelope };
}
