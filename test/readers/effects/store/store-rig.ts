// What a store brings along so that the suite can run over it.

import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";

export interface StoreRig {
  /** Of a new, empty database; opened. */
  readonly store: EffectsStore;
  /** Another writer of the same database, not opened. The rig closes it. */
  another(): EffectsStore;
  /** What an operator may do by hand. */
  deleteAll(table: string): Promise<void>;
  /** Closes all stores and removes the database. */
  end(): Promise<void>;
}
