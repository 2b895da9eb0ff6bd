import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";

export interface StoreRig {
  readonly store: EffectsStore;
  another(): EffectsStore;
  deleteAll(table: string): Promise<void>;
  end(): Promise<void>;
}
