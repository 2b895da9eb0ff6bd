// What each store provides so that the shared suite can run over it.

import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";

export interface StoreRig {
  /** A store of a new, empty database; opened. */
  readonly store: EffectsStore;
  /** Another writer of the same database, not opened. The rig closes it. */
  another(): EffectsStore;
  /** Changes that an operator may make by hand. */
  deleteAll(table: string): Promise<void>;
  /** Closes all stores and removes the database. */
  end(): Promise<void>;
}
