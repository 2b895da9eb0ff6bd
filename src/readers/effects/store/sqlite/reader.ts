// The reader for SQLite. Opens the file read-only at the first query, and takes no writer's lock.

import type { IncidentRow, OutboxRow, Position, RejectedRow, SpikeRow } from "../../types.ts";
import type { DumpKind } from "../dump.ts";
import type {
  AppliedStream,
  EffectsReader,
  Group,
  GroupName,
  Link,
  Page,
  PageOf,
  Person,
  ProjectIds,
  ReachedStream,
  StreamMessage,
  Totals,
  UsageDay,
  Versioned,
} from "../port.ts";
import { incidentOf, outboxOf, positionsOf, rejectedOf, spikeOf } from "../rows/read-rows.ts";
import { spikePage } from "../shared-sql.ts";
import type { SqliteLongRead } from "./long-read.ts";
import type { SqliteQueries } from "./queries.ts";
import { ThreadLink } from "./thread-link.ts";

interface Days {
  readonly from: string;
  readonly to: string;
}

export class SqliteReader implements EffectsReader {
  readonly #file: string;
  readonly #thread: ThreadLink<SqliteQueries>;

  constructor({ file }: { readonly file: string }) {
    this.#file = file;
    this.#thread = new ThreadLink({ role: "reader", file });
  }

  /** A running thread prevents the process from exiting. */
  close(): Promise<void> {
    return this.#thread.close();
  }

  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined> {
    return this.#thread.call("personByDistinctId", projectId, distinctId);
  }

  personByUuid(projectId: string, uuid: string): Promise<Person | undefined> {
    return this.#thread.call("personByUuid", projectId, uuid);
  }

  persons(projectId: string, page: Page): Promise<PageOf<Person>> {
    return this.#thread.call("persons", projectId, page);
  }

  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined> {
    return this.#thread.call("links", projectId, uuid);
  }

  group(name: GroupName): Promise<Group | undefined> {
    return this.#thread.call("group", name);
  }

  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>> {
    return this.#thread.call("groups", projectId, type, page);
  }

  groupTypes(projectId: string): Promise<readonly string[]> {
    return this.#thread.call("groupTypes", projectId);
  }

  usage(projectId: string, days: Days): Promise<readonly UsageDay[]> {
    return this.#thread.call("usage", projectId, days);
  }

  activePeople(
    projectId: string,
    days: Days,
  ): Promise<readonly { day: string; estimate: number }[]> {
    return this.#thread.call("activePeople", projectId, days);
  }

  async spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>> {
    const rows = await this.#thread.call("spikes", projectId, fromMs, page);
    return spikePage(rows.map(spikeOf), page);
  }

  async rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]> {
    return (await this.#thread.call("rejected", projectId, limit)).map(rejectedOf);
  }

  async incidents(limit: number): Promise<readonly IncidentRow[]> {
    return (await this.#thread.call("incidents", limit)).map(incidentOf);
  }

  async unpublished(): Promise<readonly OutboxRow[]> {
    return (await this.#thread.call("unpublished")).map(outboxOf);
  }

  async positions(): Promise<readonly Position[]> {
    return positionsOf(await this.#thread.call("positions"));
  }

  installation(): Promise<string | undefined> {
    return this.#thread.call("installation");
  }

  applied(): Promise<readonly AppliedStream[]> {
    return this.#thread.call("applied");
  }

  reached(messages: readonly StreamMessage[]): Promise<Versioned<readonly ReachedStream[]>> {
    return this.#thread.call("reached", messages);
  }

  personUuids(ids: readonly ProjectIds[]): Promise<Versioned<readonly (string | null)[]>> {
    return this.#thread.call("personUuids", ids);
  }

  totals(): Promise<Totals> {
    return this.#thread.call("totals");
  }

  projects(): Promise<readonly string[]> {
    return this.#thread.call("projects");
  }

  hasWriter(): Promise<boolean> {
    return this.#thread.call("hasWriter");
  }

  dump(kind: DumpKind = "all"): AsyncIterable<string> {
    return this.#long((thread) => thread.call("dump", kind));
  }

  async *#long<Item>(
    next: (thread: ThreadLink<SqliteLongRead>) => Promise<readonly Item[]>,
  ): AsyncGenerator<Item> {
    const thread = new ThreadLink<SqliteLongRead>({ role: "long_read", file: this.#file });
    try {
      let batch = next(thread);
      for (;;) {
        const items = await batch;
        if (items.length === 0) return;
        // The thread reads the next batch while these lines are processed.
        batch = next(thread);
        batch.catch(() => undefined);
        yield* items;
      }
    } finally {
      await thread.close();
    }
  }
}
