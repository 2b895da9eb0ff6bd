// What is found out of a request only once it is refused, so that whoever made the mistake finds
// it: a name that looks like a slip, and which SDK it was. Decides nothing.

import type { ClientWarningTaker } from "../../base/client-warning.ts";
import type { Problem } from "../../base/errors.ts";
import { Header, TokenType } from "../../scan/table.ts";
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

  /** Tells the exchange which SDK made the body, while a warning on it would be kept. */
  noteLibrary({ exchange, body, table }: Work): void {
    if (this.#clientWarnings?.hasRoom) exchange.library = libraryOf(body, table);
  }

  /**
   * The problem that the envelope has, with what looks like the key where none came, or like the
   * batch.
   */
  withHint(problem: Problem, work: Work): Problem {
    // The table says nothing more of a body that is neither.
    const root = work.table[Header.RootType];
    if (root !== TokenType.Object && root !== TokenType.Array) return problem;
    this.noteLibrary(work);
    const hint = work.protocol.hintOf(problem, work, this.#slips);
    return hint === "" ? problem : { ...problem, detail: `${problem.detail}; ${hint}` };
  }
}
