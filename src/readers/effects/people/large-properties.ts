// How much of a project's properties is of people and groups that have very many: each write to one
// of them takes as long as all that it has, so a project may have only so much of it that few bytes
// of events cannot keep everybody else waiting for long.

import type { LargePropertiesRow } from "../types.ts";

/** Above this the properties of a person or a group are large: some 0.5 ms to write to them. */
export const largeBytesMin = 65_536;

export class LargeProperties {
  readonly #bytesMax: number;
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<string>();

  /** Bytes of a project. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Begins from what the store has. */
  begin(rows: readonly LargePropertiesRow[]): void {
    this.#bytes.clear();
    this.#changed.clear();
    for (const { projectId, bytes } of rows) this.#bytes.set(projectId, bytes);
  }

  /** Whether properties of `from` bytes may become `to`. Smaller ones always may. */
  hasRoom(projectId: string, from: number, to: number): boolean {
    const more = counted(to) - counted(from);
    return more <= 0 || (this.#bytes.get(projectId) ?? 0) + more <= this.#bytesMax;
  }

  /** They did. */
  move(projectId: string, from: number, to: number): void {
    const more = counted(to) - counted(from);
    if (more === 0) return;
    this.#bytes.set(projectId, (this.#bytes.get(projectId) ?? 0) + more);
    this.#changed.add(projectId);
  }

  /** The rows that changed since the last call. */
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
