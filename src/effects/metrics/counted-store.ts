// A store whose commits are counted. Changes nothing of what the store does.

import type { EffectsStore } from "../store/port.ts";
import type { Commit } from "../types.ts";

interface CommitCounts {
  committed(commit: Commit, seconds: number): void;
  failed(): void;
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
    counts.committed(changes, (performance.now() - sinceMonotonicMs) / 1_000);
  };
  return {
    reader: store.reader,
    open: () => store.open(),
    holdsLock: () => store.holdsLock(),
    lastCommit: () => store.lastCommit(),
    positions: () => store.positions(),
    members: (projectId, distinctIds) => store.members(projectId, distinctIds),
    groups: (names) => store.groups(names),
    groupTypes: (projectIds) => store.groupTypes(projectIds),
    activeIds: (days) => store.activeIds(days),
    activity: (projectIds) => store.activity(projectIds),
    commit,
    outbox: (limit, afterId) => store.outbox(limit, afterId),
    published: (messageIds) => store.published(messageIds),
    trimOutbox: (rowsMax) => store.trimOutbox(rowsMax),
    close: () => store.close(),
  };
}
