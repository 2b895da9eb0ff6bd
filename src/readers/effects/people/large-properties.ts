import type { LargePropertiesRow } from "../types.ts";

/** Properties above this size are large: a write takes 0.5 ms or more. */
export const largeBytesMin = 65_536;

export class LargeProperties {
  readonly #bytesMax: number;
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<string>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  begin(rows: readonly LargePropertiesRow[]): void {
    this.#bytes.clear();
    this.#changed.clear();
    for (const { projectId, bytes } of rows) this.#bytes.set(projectId, bytes);
  }

  hasRoom(projectId: string, from: number, to: number): boolean {
    const more = counted(to) - counted(from);
    return more <= 0 || (this.#bytes.get(projectId) ?? 0) + more <= this.#bytesMax;
  }

  move(projectId: string, from: number, to: number): void {
    const more = counted(to) - counted(from);
    if (more === 0) return;
    this.#bytes.set(projectId, (this.#bytes.get(projectId) ?? 0) + more);
    this.#changed.add(projectId);
  }

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
