// Keeps what the outbox notes out of the writer's transactions: what is removed within one that is
// undone would come back, and be published again.

import type { EffectsStore } from "../store/port.ts";

/** Whether a transaction is being written, in one piece or more. */
export class OpenTransaction {
  #end: PromiseWithResolvers<void> | undefined;

  begin(): void {
    this.#end ??= Promise.withResolvers();
  }

  /** It is committed or undone. */
  end(): void {
    this.#end?.resolve();
    this.#end = undefined;
  }

  /** Fulfilled when none is open: what is asked of the store at once then comes before the next. */
  async ended(): Promise<void> {
    while (this.#end !== undefined) await this.#end.promise;
  }
}

type Outbox = Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;

/** The store's outbox, from which rows go only while no transaction is open. */
export function outsideOf(transaction: OpenTransaction, store: Outbox): Outbox {
  return {
    outbox: (limit, afterId) => store.outbox(limit, afterId),
    async published(messageIds) {
      await transaction.ended();
      await store.published(messageIds);
    },
    async trimOutbox(rowsMax) {
      await transaction.ended();
      return await store.trimOutbox(rowsMax);
    },
  };
}
