// The ClickHouse target. ClickHouse does not support transactions, so the positions are written
// after the events. After an interruption, the next batch skips the rows that already exist.

import { setTimeout as delay } from "node:timers/promises";
import { StoreError } from "../../../platform/base/store-error.ts";
import {
  eventColumnsOf,
  nextCopies,
  personColumn,
  type RejectedLine,
  refusedLine,
  type SinkRecord,
  singleEvents,
} from "../sink-records.ts";
import type {
  SinkBatch,
  SinkIncident,
  SinkPosition,
  SinkTarget,
  WriteOutcome,
} from "../sink-target.ts";
import {
  ClickHouseClient,
  ClickHouseError,
  isOfValue,
  readAddress,
  runningAlready,
} from "./client.ts";
import { JsonRows } from "./json-rows.ts";
import { SinkLock } from "./sink-lock.ts";
import {
  columnsOf,
  databaseSql,
  ddl,
  insertedColumns,
  modernForm,
  personColumnSql,
  type ServerForm,
  serverForm,
  tableNames,
  tablesSql,
} from "./tables.ts";
import { checkBefore, positionRows, readPositions, WrittenRows } from "./written-rows.ts";

interface ClickHouseTargetOptions {
  readonly url: string;
  readonly database: string;
  readonly makesTables?: boolean;
  readonly withPerson?: boolean;
  readonly hasLock?: boolean;
}

/** Time in ms for which a server may still list a query after its response. */
const sameIdMsMax = 30_000;
const sameIdPauseMs = 10;
const textEncoder = new TextEncoder();

type Refused = Map<SinkRecord, string>;

export class ClickHouseTarget implements SinkTarget {
  readonly shown: string;
  readonly #client: ClickHouseClient;
  readonly #database: string;
  readonly #makesTables: boolean;
  readonly #withPerson: boolean;
  readonly #lock: SinkLock | undefined;
  readonly #writtenRows: WrittenRows;
  readonly #queryId: string;
  #form: ServerForm = modernForm;
  #rows: JsonRows;

  constructor(options: ClickHouseTargetOptions) {
    const { url, database, makesTables = true, withPerson = false, hasLock = true } = options;
    const address = readAddress(url);
    const client = new ClickHouseClient(address);
    this.shown = `${address.shown}, database ${database}`;
    this.#client = client;
    this.#database = database;
    this.#makesTables = makesTables;
    this.#withPerson = withPerson;
    this.#rows = new JsonRows(modernForm, eventColumnsOf({ withPerson }));
    this.#lock = hasLock ? new SinkLock(client, database) : undefined;
    this.#writtenRows = new WrittenRows(client, database);
    this.#queryId = `penstock-sink-write:${database}`;
  }

  async ddl(): Promise<string> {
    await this.#learnForm();
    return ddl(this.#database, this.#form, { withPerson: this.#withPerson });
  }

  async open(): Promise<readonly SinkPosition[]> {
    await this.#learnForm();
    await this.#seeToTables();
    await this.#lock?.take();
    const positions = await readPositions(this.#client, this.#database);
    await this.#alone(() => this.#writtenRows.open(positions, this.#queryId));
    return positions;
  }

  async write(batch: SinkBatch): Promise<WriteOutcome> {
    this.#checkLock();
    await checkBefore(this.#client, this.#database, batch);
    const { written, refused } = await this.#writeEvents(batch.events);
    await this.#insertRejected(batch.rejected);
    await this.#insertIncidents(batch.incidents);
    this.#checkLock();
    const { positions } = batch;
    await this.#insert("positions", columnsOf.positions.slice(0, 9), positionRows(positions));
    const duplicates = batch.events.length - written - refused;
    return { written, duplicates, refused };
  }

  async close(): Promise<void> {
    await this.#lock?.release();
    this.#client.close();
  }

  async #learnForm(): Promise<void> {
    const [row] = await this.#client.rows("connect to", "SELECT version()");
    this.#form = serverForm(String(row?.[0]));
    const columns = eventColumnsOf({ withPerson: this.#withPerson });
    this.#rows = new JsonRows(this.#form, columns);
  }

  async #seeToTables(): Promise<void> {
    const sql = `SELECT table, name FROM system.columns WHERE database = '${this.#database}'`;
    const columns = async (): Promise<Set<string>> =>
      new Set((await this.#client.rows("list the tables of", sql)).map((row) => row.join(".")));
    const person = `events.${personColumn.name}`;
    const wanted = tableNames.flatMap((table) =>
      columnsOf[table].map((name) => `${table}.${name}`),
    );
    if (this.#withPerson) wanted.push(person);
    let there = await columns();
    const isMissing = (name: string): boolean => !there.has(name);
    if (this.#makesTables && wanted.some(isMissing)) {
      // If the database exists, it is not created, because the user may not have the privilege.
      const statements = there.size === 0 ? [databaseSql(this.#database)] : [];
      const tables = tablesSql(this.#database, this.#form);
      for (const table of tableNames)
        if (columnsOf[table].every((name) => isMissing(`${table}.${name}`)))
          statements.push(tables[table]);
      if (this.#withPerson && isMissing(person))
        statements.push(personColumnSql(this.#database, this.#form));
      for (const statement of statements) await this.#client.run("create the tables in", statement);
      there = await columns();
    }
    const first = wanted.find(isMissing);
    if (first !== undefined)
      throw new StoreError(
        `cannot open ClickHouse at ${this.shown}: ${first} does not exist: \`penstock sink clickhouse --ddl\` prints the statements`,
      );
  }

  /**
   * Writes the events. If ClickHouse refuses an event, the event is stored as rejected before its
   * next copy is tried. Otherwise, the row of the copy would count for both events after a restart.
   */
  async #writeEvents(all: readonly SinkRecord[]): Promise<{ written: number; refused: number }> {
    const outOfRange: Refused = new Map();
    const inRange = all.filter((event) => {
      const fault = this.#rows.timeFault(event);
      if (fault !== undefined) outOfRange.set(event, fault);
      return fault === undefined;
    });
    await this.#putAside(outOfRange);
    const there = await this.#writtenRows.of(inRange);
    const next = nextCopies(inRange);
    let written = 0;
    let refused = outOfRange.size;
    for (let some = singleEvents(inRange); some.length > 0; ) {
      const events = some.filter((event) => !there.has(event));
      const found: Refused = new Map();
      await this.#insertEvents(events, found);
      await this.#putAside(found);
      written += events.length - found.size;
      refused += found.size;
      some = [...found.keys()].flatMap((event) => next.get(event) ?? []);
    }
    return { written, refused };
  }

  async #putAside(faults: Refused): Promise<void> {
    await this.#insertRejected([...faults].map(([event, fault]) => refusedLine(event, fault)));
  }

  async #insertEvents(events: readonly SinkRecord[], refused: Refused): Promise<void> {
    if (events.length === 0) return;
    try {
      await this.#alone(() =>
        this.#insert("events", this.#eventColumns, this.#rows.events(events), this.#queryId),
      );
    } catch (error) {
      if (!isOfValue(error)) throw error;
      const [event] = events;
      if (events.length === 1 && event !== undefined) {
        refused.set(event, error.said);
        return;
      }
      const middle = events.length >> 1;
      await this.#insertEvents(events.slice(0, middle), refused);
      await this.#insertEvents(events.slice(middle), refused);
    }
  }

  get #eventColumns(): readonly string[] {
    return this.#withPerson ? [...insertedColumns, personColumn.name] : insertedColumns;
  }

  async #insertRejected(lines: readonly RejectedLine[]): Promise<void> {
    if (lines.length === 0) return;
    await this.#insert("rejected", columnsOf.rejected, this.#rows.rejected(lines));
  }

  async #insertIncidents(incidents: readonly SinkIncident[]): Promise<void> {
    if (incidents.length === 0) return;
    const rows = incidents.map((one) => `${JSON.stringify(one)}\n`).join("");
    await this.#insert("incidents", columnsOf.incidents.slice(1), rows);
  }

  async #insert(
    table: string,
    columns: readonly string[],
    rows: string | Iterable<Uint8Array>,
    queryId?: string,
  ): Promise<void> {
    const sql = `INSERT INTO ${this.#database}.${table} (${columns.join(", ")}) FORMAT JSONEachRow`;
    const chunks = typeof rows === "string" ? [textEncoder.encode(rows)] : rows;
    const settings = this.#form.hasMilliseconds ? { async_insert: "0" } : {};
    const id = queryId === undefined ? {} : { queryId };
    await this.#client.insert("write to", { sql, chunks }, { settings, ...id });
  }

  /**
   * Runs `work` when no other query with the same id is running, because the rows of that query
   * must be visible first.
   */
  async #alone(work: () => Promise<void>): Promise<void> {
    const deadline = performance.now() + sameIdMsMax;
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        const isSame = error instanceof ClickHouseError && error.code === runningAlready;
        if (!isSame) throw error;
        if (performance.now() > deadline)
          throw new StoreError(
            `${error.message}: waiting, because an insert of a sink is still running`,
          );
      }
      await delay(sameIdPauseMs);
    }
  }

  #checkLock(): void {
    if (this.#lock?.isHeld === false)
      throw new StoreError(`cannot write to ClickHouse at ${this.shown}: the lock was lost`);
  }
}
