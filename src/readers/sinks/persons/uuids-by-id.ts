// The uuids of persons by project and distinct id; "": the id has no person.

export class UuidsById {
  readonly #projects = new Map<string, Map<string, string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(projectId: string, distinctId: string): string | undefined {
    return this.#projects.get(projectId)?.get(distinctId);
  }

  set(projectId: string, distinctId: string, uuid: string): void {
    let ids = this.#projects.get(projectId);
    if (ids === undefined) {
      ids = new Map();
      this.#projects.set(projectId, ids);
    }
    const before = ids.size;
    ids.set(distinctId, uuid);
    this.#size += ids.size - before;
  }
}
