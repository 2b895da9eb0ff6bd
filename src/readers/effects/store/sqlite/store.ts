// The store for SQLite. It has one thread for writing, one for lookups and one for readers, so that
// lookups and HTTP requests do not wait for a commit.

import type {
  ActiveIdsRow,
  ActivityRow,
  Commit,
  GroupRow,
  LargePropertiesRow,
  MemberRow,
  Position,
  StoredOutboxRow,
} from "../../types.ts";
import type { EffectsStore, GroupName } from "../port.ts";
import { flatCommit, piecesOf } from "../rows/flat-commit.ts";
import {
  activeIdsOf,
  activityOf,
  groupRowOf,
  groupTypeOf,
  largePropertiesOf,
  memberRowOf,
  outboxRowOf,
  positionsOf,
} from "../rows/read-rows.ts";
import type { SqliteLookups } from "./lookups.ts";
import { SqliteReader } from "./reader.ts";
import { ThreadLink } from "./thread-link.ts";
import type { SqliteWriter } from "./writer.ts";

const pieceRowsMax = 1_000;

type RowLookups = Pick<SqliteLookups, "members" | "groups" | "groupTypes">;

export class SqliteStore implements EffectsStore {
  readonly reader: SqliteReader;
  readonly #thread: ThreadLink<SqliteWriter>;
  readonly #lookups: ThreadLink<SqliteLookups>;
  #begun: number | undefined;
  #partsWritten: Promise<unknown> = Promise.resolve();
  #trails: Map<string, Position["trail"]> | undefined;

  constructor({ file }: { readonly file: string }) {
    this.#thread = new ThreadLink({ role: "writer", file });
    this.#lookups = new ThreadLink({ role: "lookups", file });
    this.reader = new SqliteReader({ file });
  }

  open(): Promise<void> {
    return this.#thread.call("open");
  }

  async close(): Promise<void> {
    await Promise.all([this.reader.close(), this.#lookups.close()]);
    await this.#thread.close();
  }

  holdsLock(): Promise<boolean> {
    return this.#thread.call("holdsLock");
  }

  bindTo(prefix: string): Promise<void> {
    return this.#thread.call("bindTo", prefix);
  }

  lastCommit(): Promise<number> {
    this.#begun = undefined;
    return this.#thread.call("lastCommit");
  }

  async positions(): Promise<readonly Position[]> {
    const positions = positionsOf(await this.#thread.call("positions"));
    this.#trails = new Map(positions.map(({ stream, trail }) => [stream, trail]));
    return positions;
  }

  async members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]> {
    return (await (await this.#rows()).call("members", projectId, distinctIds)).map(memberRowOf);
  }

  async groups(names: readonly GroupName[]): Promise<readonly GroupRow[]> {
    return (await (await this.#rows()).call("groups", names)).map(groupRowOf);
  }

  async groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]> {
    return (await (await this.#rows()).call("groupTypes", projectIds)).map(groupTypeOf);
  }

  async activeIds(
    days: readonly { projectId: string; day: string }[],
  ): Promise<readonly ActiveIdsRow[]> {
    const keys = days.map(({ projectId, day }) => [projectId, day] as const);
    return (await this.#thread.call("activeIds", keys)).map(activeIdsOf);
  }

  async activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]> {
    return (await this.#thread.call("activity", projectIds)).map(activityOf);
  }

  async largeProperties(): Promise<readonly LargePropertiesRow[]> {
    return (await this.#thread.call("largeProperties")).map(largePropertiesOf);
  }

  commit(commit: Commit): Promise<void> {
    const isInParts = commit.isPart === true || this.#begun === commit.number;
    const written = this.#write(commit);
    if (isInParts) this.#partsWritten = written.catch(() => {});
    return written;
  }

  async #write(commit: Commit): Promise<void> {
    if (this.#trails === undefined) await this.positions();
    const before = this.#trails ?? new Map<string, Position["trail"]>();
    this.#trails = undefined;
    const { number, isPart = false } = commit;
    let isFirst = this.#begun !== number;
    this.#begun = undefined;
    let written: Promise<void> | undefined;
    for (const piece of piecesOf(commit, pieceRowsMax)) {
      const rows = flatCommit(piece, before);
      await written;
      written = this.#thread.call("commit", rows, { isFirst, isLast: piece.isPart !== true });
      isFirst = false;
    }
    await written;
    if (isPart) this.#begun = number;
    for (const { stream, trail } of commit.positions) before.set(stream, trail);
    this.#trails = before;
  }

  /**
   * Returns the thread for lookups. While a commit is written in parts, this is the writer's
   * thread, because only its connection sees the parts.
   */
  async #rows(): Promise<ThreadLink<RowLookups>> {
    await this.#partsWritten;
    return this.#begun === undefined ? this.#lookups : this.#thread;
  }

  async outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]> {
    return (await this.#thread.call("outbox", limit, afterId)).map(outboxRowOf);
  }

  trimOutbox(rowsMax: number): Promise<number> {
    return this.#thread.call("trimOutbox", rowsMax);
  }

  published(messageIds: readonly string[]): Promise<void> {
    return this.#thread.call("published", messageIds);
  }
}
