// The PostgreSQL target. Events, rejected lines and positions are written in one transaction. If
// the server refuses a value, the events are inserted one by one.

import { hash } from "node:crypto";
import type { Client } from "pg";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { type PostgresAddress, readAddress } from "../../../platform/postgres/address.ts";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { requireUtf8 } from "../../../platform/postgres/connect.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { storedText } from "../../stream/frame.ts";
import {
  type EventColumn,
  eventColumnsOf,
  nextCopies,
  type RejectedLine,
  refusedLine,
  type SinkRecord,
  singleEvents,
  textOf,
} from "../sink-records.ts";
import type { SinkBatch, SinkPosition, SinkTarget, WriteOutcome } from "../sink-target.ts";
import { copyChunks, copyIn } from "./copy-rows.ts";
import { readPositions, writePositions } from "./positions.ts";
import { hasHugeNumber, insertEach, isOfValue, type Refused } from "./refused-events.ts";
import { SinkSession } from "./session.ts";
import { checkColumnTypes, makePart, personColumnSql, tablesSql, tablesVersion } from "./tables.ts";

interface PostgresTargetOptions {
  readonly url: string;
  readonly schema: string;
  readonly withPerson?: boolean;
}

const hasPersonSql = `SELECT EXISTS (SELECT FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attname = 'person_uuid' AND NOT attisdropped)`;
/** The keys also include the plain uuids, because release 0.1.0 used uuids as keys. */
const keysSql = `INSERT INTO event_keys (uuid, project_id, day)
  SELECT key, project_id, (to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC')::date
  FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::float8[]) AS new (key, project_id, uuid, ms)
  WHERE NOT EXISTS (SELECT FROM event_keys AS old
    WHERE old.uuid = new.uuid AND old.project_id = new.project_id)
  ORDER BY key, project_id
  ON CONFLICT DO NOTHING`;
const knownKeysSql = `SELECT at FROM unnest($1::uuid[], $2::text[], $3::uuid[])
    WITH ORDINALITY AS wanted (key, project_id, uuid, at)
  WHERE EXISTS (SELECT FROM event_keys AS old
    WHERE old.uuid IN (wanted.key, wanted.uuid) AND old.project_id = wanted.project_id)`;
const triedAtOnce = 256;
const forgetSql = `DELETE FROM event_keys USING unnest($1::uuid[], $2::text[]) AS refused (key, project)
  WHERE event_keys.uuid = key AND event_keys.project_id = project`;
const rejectedSql = `INSERT INTO rejected
  (stream, sequence, line, stored_at, project_id, reason, detail, record)
  SELECT stream, sequence, line, to_timestamp(ms / 1000.0), project_id, reason, detail, record
  FROM unnest($1::text[], $2::bigint[], $3::integer[], $4::float8[], $5::text[], $6::text[],
    $7::text[], $8::text[])
    AS new (stream, sequence, line, ms, project_id, reason, detail, record)`;
const incidentsSql = `INSERT INTO incidents (stream, epoch, sequence, kind, messages, detail)
  SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
    AS new (stream, epoch, sequence, kind, messages, detail)
  WHERE NOT EXISTS (SELECT FROM incidents AS known
    WHERE (known.stream, known.epoch, known.sequence, known.kind, known.detail)
      = (new.stream, new.epoch, new.sequence, new.kind, new.detail))`;

export class PostgresTarget implements SinkTarget {
  readonly shown: string;
  readonly #schema: string;
  readonly #session: SinkSession;
  readonly #withPerson: boolean;
  readonly #columns: readonly EventColumn[];
  #days = new Set<string>();
  #trailEnds = new Map<string, SinkPosition>();

  constructor({ url, schema, withPerson = false }: PostgresTargetOptions) {
    const address: PostgresAddress = readAddress(url);
    this.shown = `${address.shown}, schema ${schema}`;
    this.#schema = schema;
    this.#session = new SinkSession(address, schema);
    this.#withPerson = withPerson;
    this.#columns = eventColumnsOf({ withPerson });
  }

  open(): Promise<readonly SinkPosition[]> {
    this.#days.clear();
    return this.#session.run("open the tables", async (client) => {
      await this.#session.begin(client);
      await this.#makeTables(client);
      // The types are checked first, because adding a column blocks readers of the table.
      await checkColumnTypes(client, this.#schema, this.#columns);
      if (this.#withPerson) await this.#makePersonColumn(client);
      const positions = await readPositions(client);
      await client.query("COMMIT");
      this.#trailEnds = new Map(positions.map((one) => [one.stream, one]));
      return positions;
    });
  }

  async write(batch: SinkBatch): Promise<WriteOutcome> {
    const { before, positions, events, rejected, incidents } = batch;
    return await this.#session.run("write events", async (client) => {
      await this.#session.begin(client);
      await writePositions(client, { before, positions, trailEnds: this.#trailEnds });
      const days = await this.#makeParts(client, events);
      const { written, refused } = await this.#writeEvents(client, events);
      const aside = [...refused].map(([event, detail]) => refusedLine(event, detail));
      await insertRejected(client, [...rejected, ...aside]);
      if (incidents.length > 0) {
        const columns = ["stream", "epoch", "sequence", "kind", "messages", "detail"] as const;
        const values = columns.map((name) => arrayOf(incidents.map((one) => one[name])));
        await client.query(incidentsSql, values);
      }
      await client.query("COMMIT");
      for (const day of days) this.#days.add(day);
      for (const position of positions) this.#trailEnds.set(position.stream, position);
      const duplicates = events.length - written - refused.size;
      return { written, duplicates, refused: refused.size };
    });
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async #makeTables(client: Client): Promise<void> {
    const [there] = await selectRows(client, "SELECT to_regclass($1) IS NOT NULL", [
      `"${this.#schema}".sink_version`,
    ]);
    if (there?.[0] === 1) {
      const [row] = await selectRows(client, "SELECT version FROM sink_version");
      if (row?.[0] === tablesVersion) return;
      throw new StoreError(
        `cannot open PostgreSQL at ${this.shown}: its tables have version ${row?.[0]}, and this release supports ${tablesVersion}: use a newer release`,
      );
    }
    await requireUtf8(client, this.shown);
    const schema = await selectRows(client, "SELECT to_regnamespace($1) IS NOT NULL", [
      `"${this.#schema}"`,
    ]);
    // If the schema exists, it is not created, because the user may not have the privilege.
    const [, ...tables] = tablesSql(this.#schema);
    for (const sql of schema[0]?.[0] === 1 ? tables : tablesSql(this.#schema))
      await client.query(sql);
  }

  /**
   * Adds the column for persons if it does not exist. The check is separate, because ALTER TABLE
   * needs a privilege and waits for readers.
   */
  async #makePersonColumn(client: Client): Promise<void> {
    const [has] = await selectRows(client, hasPersonSql, [`"${this.#schema}".events`]);
    if (has?.[0] !== 1) await client.query(personColumnSql(this.#schema));
  }

  async #writeEvents(
    client: Client,
    all: readonly SinkRecord[],
  ): Promise<{ written: number; refused: Refused }> {
    const refused: Refused = new Map();
    for (const event of all) {
      const fault = faultOf(event);
      if (fault !== undefined) refused.set(event, fault);
    }
    const events = all.filter((event) => !refused.has(event));
    const fresh = await freshOf(client, singleEvents(events));
    if (await this.#isCopied(client, fresh)) return { written: fresh.length, refused };
    await checkColumnTypes(client, this.#schema, this.#columns);
    const next = nextCopies(events);
    const unwritten: SinkRecord[] = [];
    for (let start = 0; start < fresh.length; start += triedAtOnce) {
      const some = fresh.slice(start, start + triedAtOnce);
      if (await this.#isCopied(client, some)) continue;
      unwritten.push(...(await this.#insertEach(client, { some, next, refused })));
    }
    await client.query(forgetSql, keysOf(unwritten).slice(0, 2));
    return { written: fresh.length - unwritten.length, refused };
  }

  async #insertEach(
    client: Client,
    {
      some,
      next,
      refused,
    }: { some: SinkRecord[]; next: Map<SinkRecord, SinkRecord>; refused: Refused },
  ): Promise<SinkRecord[]> {
    const tried: SinkRecord[] = [];
    const keys: number[] = [];
    for (const [key, first] of some.entries())
      for (let one: SinkRecord | undefined = first; one !== undefined; one = next.get(one)) {
        tried.push(one);
        keys.push(key);
      }
    const found = await insertEach(client, this.#columns, { events: tried, keys });
    for (const [event, fault] of found) refused.set(event, fault);
    const accepted = new Set(keys.filter((_, at) => !found.has(tried[at]!)));
    return some.filter((_, key) => !accepted.has(key));
  }

  async #isCopied(client: Client, events: readonly SinkRecord[]): Promise<boolean> {
    if (events.length === 0) return true;
    const names = this.#columns.map(({ name }) => name).join(", ");
    const sql = `COPY events (${names}) FROM STDIN (FORMAT binary)`;
    await client.query("SAVEPOINT before_copy");
    try {
      await copyIn(client, sql, copyChunks(events, this.#columns));
      await client.query("SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT before_copy");
      return true;
    } catch (error) {
      if (!isOfValue(error)) throw error;
      await client.query("ROLLBACK TO SAVEPOINT before_copy");
      return false;
    }
  }

  async #makeParts(client: Client, events: readonly SinkRecord[]): Promise<string[]> {
    const days: string[] = [];
    let lastNumber = Number.NaN;
    for (const { storedAtMs } of events) {
      const dayNumber = Math.floor(storedAtMs / dayMs);
      if (dayNumber === lastNumber) continue;
      lastNumber = dayNumber;
      const day = dayOf(storedAtMs);
      if (this.#days.has(day) || days.includes(day)) continue;
      await makePart(client, day);
      days.push(day);
    }
    return days;
  }
}

async function freshOf(client: Client, events: readonly SinkRecord[]): Promise<SinkRecord[]> {
  if (events.length === 0) return [];
  const noted = async (some: readonly SinkRecord[]): Promise<number> => {
    const ms = `{${some.map(({ storedAtMs }) => storedAtMs).join(",")}}`;
    return (await client.query(keysSql, [...keysOf(some), ms])).rowCount ?? 0;
  };
  await client.query("SAVEPOINT before_keys");
  if ((await noted(events)) === events.length) return [...events];
  await client.query("ROLLBACK TO SAVEPOINT before_keys");
  const rows = await selectRows(client, knownKeysSql, keysOf(events));
  const known = new Set(rows.map(([at]) => Number(at)));
  const fresh = events.filter((_, index) => !known.has(index + 1));
  if (fresh.length > 0 && (await noted(fresh)) !== fresh.length)
    throw new StoreError("another program writes into event_keys");
  return fresh;
}

function keysOf(events: readonly SinkRecord[]): [keys: string, projects: string, uuids: string] {
  return [
    `{${events.map(eventKey).join(",")}}`,
    arrayOf(events.map(({ projectId }) => projectId)),
    `{${events.map(({ uuid }) => uuid).join(",")}}`,
  ];
}

function faultOf(event: SinkRecord): string | undefined {
  const { event: name, distinctId, origin, properties, set, setOnce, unset } = event;
  const texts = { event: name, distinctId, ip: origin.ip, kind: origin.kind };
  const wrong = Object.entries(texts).find(([, text]) => text.includes("\0"));
  if (wrong !== undefined) return `its ${wrong[0]} has the character U+0000`;
  const isHuge = [properties, set, setOnce, unset].some(
    (json) => json !== undefined && hasHugeNumber(json),
  );
  return isHuge ? "it has a number that jsonb would write out with thousands of digits" : undefined;
}

async function insertRejected(client: Client, lines: readonly RejectedLine[]): Promise<void> {
  if (lines.length === 0) return;
  const columns = ["stream", "sequence", "line", "storedAtMs"] as const;
  const texts = ["projectId", "reason", "detail"] as const;
  await client.query(rejectedSql, [
    ...columns.map((name) => arrayOf(lines.map((line) => line[name]))),
    ...texts.map((name) => arrayOf(lines.map((line) => storedText(line[name])))),
    arrayOf(lines.map(({ text }) => storedText(textOf(text)))),
  ]);
}

/**
 * Returns the key of an event in the form of a uuid. The key starts like the event's uuid, so that
 * the index has the same order. Databases store the key, so this function must never change.
 */
function eventKey({
  uuid,
  event,
  distinctId,
}: Pick<SinkRecord, "uuid" | "event" | "distinctId">): string {
  const names = JSON.stringify([uuid, event, distinctId]);
  const digest = hash("sha256", names, "hex");
  return `${uuid.slice(0, 19)}${digest.slice(0, 4)}-${digest.slice(4, 16)}`;
}
