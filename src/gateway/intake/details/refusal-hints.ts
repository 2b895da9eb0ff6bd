// Finds out what helps a client to find its mistake, only once a request is refused or some of its
// items are: a name that looks like a slip, and the SDK that sent the request. Decides nothing.

import type { ClientWarningTaker } from "../../../platform/base/client-warning.ts";
import type { Problem } from "../../../platform/base/errors.ts";
import { Header, TokenType } from "../../../records/table.ts";
import { libraryOf } from "../library.ts";
import type { Work } from "../work.ts";
import type { Slips } from "./slips.ts";

export class RefusalHints {
  readonly #slips: Slips;
  readonly #clientWarnings: ClientWarningTaker | undefined;

  constructor(slips: Slips, clientWarnings: ClientWarningTaker | undefined) {
    this.#slips = slips;
    this.#clientWarnings = clientWarnings;
  }

  /** Tells the exchange which SDK made the body, unless no warning on the request would be kept. */
  noteLibrary({ exchange, body, table }: Work): void {
    if (this.#clientWarnings?.hasRoom) exchange.library = libraryOf(body, table);
  }

  /**
   * The problem of the envelope, with a hint on a name that looks like a slip for the missing key
   * or for the missing batch.
   */
  withHint(problem: Problem, work: Work): Problem {
    // For a body that is neither an object nor an array, the table says nothing but that.
    const root = work.table[Header.RootType];
    if (root !== TokenType.Object && root !== TokenType.Array) return problem;
    this.noteLibrary(work);
    const hint = work.protocol.hintOf(problem, work, this.#slips);
    return hint === "" ? problem : { ...problem, detail: `${problem.detail}; ${hint}` };
  }
}
