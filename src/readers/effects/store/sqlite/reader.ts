import type { Value } from "../../../../platform/base/table.ts";
import type { Position } from "../../types.ts";
import type { DumpKind } from "../dump.ts";
import type {
  EffectsReader,
  Group,
  Link,
  Page,
  PageOf,
  Person,
  ProjectIds,
  ReachedStream,
  StreamMessage,
  Totals,
} from "../port.ts";
import { positionsOf } from "../rows/read-rows.ts";
import { SharedReader, totalsOf } from "../shared-sql.ts";
import type { SqliteLongRead } from "./long-read.ts";
import type { SqliteQueries } from "./queries.ts";
import { ThreadLink } from "./thread-link.ts";

const totalsSql = `SELECT persons, groups,
  (SELECT count(*) FROM spikes WHERE ended_at_ms IS NULL),
  (SELECT coalesce(sum(total), 0) FROM rejected_totals),
  (SELECT coalesce(max(id), 0) FROM incidents) FROM totals`;

export class SqliteReader extends SharedReader implements EffectsReader {
  readonly #file: string;
  readonly #thread: ThreadLink<SqliteQueries>;

  constructor({ file }: { readonly file: string }) {
    super();
    this.#file = file;
    this.#thread = new ThreadLink({ role: "reader", file });
  }

  /** Ends the thread. The process cannot exit before. */
  close(): Promise<void> {
    return this.#thread.close();
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

  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>> {
    return this.#thread.call("groups", projectId, type, page);
  }

  async positions(): Promise<readonly Position[]> {
    return positionsOf(await this.#thread.call("positions"));
  }

  reached(messages: readonly StreamMessage[]): Promise<readonly ReachedStream[]> {
    return this.#thread.call("reached", messages);
  }

  personUuids(ids: readonly ProjectIds[]): Promise<readonly (string | null)[]> {
    return this.#thread.call("personUuids", ids);
  }

  version(): Promise<string> {
    return this.#thread.call("version");
  }

  async totals(): Promise<Totals> {
    return totalsOf(await this.all(totalsSql));
  }

  hasWriter(): Promise<boolean> {
    return this.#thread.call("hasWriter");
  }

  async *dump(kind: DumpKind = "all"): AsyncGenerator<string> {
    const thread = new ThreadLink<SqliteLongRead>({ role: "long_read", file: this.#file });
    try {
      let batch = thread.call("dump", kind);
      for (;;) {
        const lines = await batch;
        if (lines.length === 0) return;
        batch = thread.call("dump", kind);
        batch.catch(() => undefined);
        yield* lines;
      }
    } finally {
      await thread.close();
    }
  }

  protected all(sql: string, ...values: readonly Value[]): Promise<Value[][]> {
    return this.#thread.call("all", sql, values);
  }
}
