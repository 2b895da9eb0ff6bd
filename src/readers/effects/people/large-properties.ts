// Limits the total size of large properties per project. Each write to a person or group takes as
// long as reading all its properties, so without a limit a few bytes of events could delay all
// other projects considerably.

import type { LargePropertiesRow } from "../types.ts";

/**
 * Size in bytes above which the properties of a person or group are large: a write takes 0.5 ms or
 * more.
 */
export const largeBytesMin = 65_536;

export class LargeProperties {
  readonly #bytesMax: number;
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<string>();

  /** Creates a limit of `bytesMax` bytes per project. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Replaces all sizes with the rows of the store. */
  begin(rows: readonly LargePropertiesRow[]): void {
    this.#bytes.clear();
    this.#changed.clear();
    for (const { projectId, bytes } of rows) this.#bytes.set(projectId, bytes);
  }

  /**
   * Returns whether properties of `from` bytes may become `to` bytes. Shrinking is always allowed.
   */
  hasRoom(projectId: string, from: number, to: number): boolean {
    const more = counted(to) - counted(from);
    return more <= 0 || (this.#bytes.get(projectId) ?? 0) + more <= this.#bytesMax;
  }

  /** Records that properties of `from` bytes have become `to` bytes. */
  move(projectId: string, from: number, to: number): void {
    const more = counted(to) - counted(from);
    if (more === 0) return;
    this.#bytes.set(projectId, (this.#bytes.get(projectId) ?? 0) + more);
    this.#changed.add(projectId);
  }

  /** Returns the rows that changed since the last call. */
  takeChanged(): LargePropertiesRow[] {
    const rows = [...this.#changed].map((projectId) => ({
      projectId,
      bytes: this.#bytes.get(projectId)!,
    }));
    this.#changed.clear();
    return rows;
  }
}

function counted(bytes: number): number {
  return bytes > largeBytesMin ? bytes : 0;
}
