// Records which projects were deleted, and by which entry of which bucket. If a copy of the bucket
// from before a deletion is restored, its entry of the project is older than the deletion marker.
// The number of records is limited, even if many projects are deleted over time.

interface Deletion {
  readonly revision: number;
  /** When the bucket of the entry was created. */
  readonly created: string;
}

const deletionsMax = 10_000;

export class Deletions {
  /** The deletions by project id, the latest last. */
  readonly #deletions = new Map<string, Deletion>();

  note(projectId: string, deletion: Deletion): void {
    if (this.isUndoneBy(projectId, deletion)) return;
    this.#deletions.delete(projectId);
    this.#deletions.set(projectId, deletion);
    if (this.#deletions.size > deletionsMax)
      this.#deletions.delete(this.#deletions.keys().next().value!);
  }

  /** Removes the record of a deletion, because the project was added again. */
  forget(projectId: string): void {
    this.#deletions.delete(projectId);
  }

  /** Returns whether an entry of that revision and bucket is older than the project's deletion. */
  isUndoneBy(projectId: string, { revision, created }: Deletion): boolean {
    const deletion = this.#deletions.get(projectId);
    return deletion !== undefined && deletion.created === created && revision < deletion.revision;
  }
}
