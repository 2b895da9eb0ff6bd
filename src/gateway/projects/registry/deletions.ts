// Which projects were deleted, and by which entry of which bucket. A copy of the bucket from before
// a deletion still has the project, in an entry that is older than the marker, which identifies the
// copy. Its size is limited, even if many projects are deleted over time.

interface Deletion {
  readonly revision: number;
  /** When the bucket was created. */
  readonly created: string;
}

const deletionsMax = 10_000;

export class Deletions {
  /** By project id, the latest last. */
  readonly #deletions = new Map<string, Deletion>();

  note(projectId: string, deletion: Deletion): void {
    if (this.isUndoneBy(projectId, deletion)) return;
    this.#deletions.delete(projectId);
    this.#deletions.set(projectId, deletion);
    if (this.#deletions.size > deletionsMax)
      this.#deletions.delete(this.#deletions.keys().next().value!);
  }

  /** Called when the project was added again. */
  forget(projectId: string): void {
    this.#deletions.delete(projectId);
  }

  /**
   * Returns whether an entry of that revision and bucket is from before the project's deletion.
   */
  isUndoneBy(projectId: string, { revision, created }: Deletion): boolean {
    const deletion = this.#deletions.get(projectId);
    return deletion !== undefined && deletion.created === created && revision < deletion.revision;
  }
}
