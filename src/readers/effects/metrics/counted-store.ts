// Wraps a store so that it reports its commits to the metrics. Its behaviour is unchanged.

import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

interface CommitCounts {
  /** Counts a written part of a commit, which is not visible to readers yet. */
  part(commit: Commit, seconds: number): void;
  /** Counts a completed commit, including its earlier parts. */
  committed(commit: Commit, seconds: number): void;
  failed(): void;
  /** Drops the counts of written parts that were rolled back. */
  undone(): void;
}

export function countedStore(store: EffectsStore, counts: CommitCounts): EffectsStore {
  const commit = async (changes: Commit): Promise<void> => {
    const sinceMonotonicMs = performance.now();
    try {
      await store.commit(changes);
    } catch (error) {
      counts.failed();
      throw error;
    }
    const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
    if (changes.isPart === true) counts.part(changes, seconds);
    else counts.committed(changes, seconds);
  };
  return {
    reader: store.reader,
    open: () => store.open(),
    bindTo: (prefix) => store.bindTo(prefix),
    holdsLock: () => store.holdsLock(),
    lastCommit: () => {
      counts.undone();
      return store.lastCommit();
    },
    positions: () => store.positions(),
    members: (projectId, distinctIds) => store.members(projectId, distinctIds),
    groups: (names) => store.groups(names),
    groupTypes: (projectIds) => store.groupTypes(projectIds),
    activeIds: (days) => store.activeIds(days),
    activity: (projectIds) => store.activity(projectIds),
    largeProperties: () => store.largeProperties(),
    commit,
    outbox: (limit, afterId) => store.outbox(limit, afterId),
    published: (messageIds) => store.published(messageIds),
    trimOutbox: (rowsMax) => store.trimOutbox(rowsMax),
    close: () => store.close(),
  };
}
