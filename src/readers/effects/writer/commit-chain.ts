// The commits of one who writes a database, each of which says which one it follows.

import { randomInt } from "node:crypto";
import type { EffectsStore } from "../store/port.ts";
import type { Changes } from "./changes.ts";

/** Numbers are drawn below it, which is the most that randomInt takes. */
const numberEnd = 2 ** 48 - 1;

export class CommitChain {
  readonly #store: Pick<EffectsStore, "commit">;
  #last = 0;
  #next = newNumber();

  constructor(store: Pick<EffectsStore, "commit">) {
    this.#store = store;
  }

  /** Goes on behind that commit of the store; 0: there is none. */
  begin(last: number): void {
    this.#last = last;
    this.#next = newNumber();
  }

  /** `isPart`: the commit is not over with that. Rejects as the store does. */
  async write(changes: Changes, isPart: boolean): Promise<void> {
    const number = this.#next;
    await this.#store.commit({ after: this.#last, number, isPart, ...changes });
    if (!isPart) this.begin(number);
  }
}

/** One that no other commit has, but by a chance of one in 10^14. Never 0, which is no commit. */
function newNumber(): number {
  return randomInt(1, numberEnd);
}
