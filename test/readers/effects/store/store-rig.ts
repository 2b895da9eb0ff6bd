import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";

export interface StoreRig {
  readonly store: EffectsStore;
  /** Another writer of the same database, which is not opened. The rig closes it. */
  another(): EffectsStore;
  deleteAll(table: string): Promise<void>;
  end(): Promise<void>;
}
