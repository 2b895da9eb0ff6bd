// A store that reports its commits to the metrics. Its behaviour is unchanged.

import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

interface CommitCounts {
  /** A part of a commit is written, and not visible to readers yet. */
  part(commit: Commit, seconds: number): void;
  /** A commit and its earlier parts are written. */
  committed(commit: Commit, seconds: number): void;
  failed(): void;
  /** The written parts were rolled back. */
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
