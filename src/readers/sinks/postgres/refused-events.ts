// Which events of a batch PostgreSQL does not take, and why: because of a value in their JSON, or
// because of what the user has added to the table. Changes nothing that is committed.

import { randomUUID } from "node:crypto";
import { type Client, DatabaseError } from "pg";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { nextCopies } from "../single-events.ts";
import type { SinkRecord } from "../sink-target.ts";

/** Events and why each of them is not taken. */
export type Refused = Map<SinkRecord, string>;

const textNames = ["event", "distinctId", "ip", "kind"] as const;
const faultsSql = `SELECT at, fault FROM (
    SELECT at, coalesce(json_fault(a), json_fault(b), json_fault(c), json_fault(d)) AS fault
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS row (a, b, c, d, at)
  ) AS looked WHERE fault IS NOT NULL`;
/**
 * Constraints that wait for the commit are checked now. A savepoint that is not released holds one
 * of the server's locks, of which all sessions together have some thousand.
 */
const keepSql = `SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT before_some;
  SAVEPOINT before_some`;
/** How the server names the place in it where a trigger's RAISE is carried out. */
const raised = "exec_stmt_raise";
/**
 * Classes of codes by which the server speaks of itself, of the connection, of what is there and of
 * what is allowed, or of a function that is wrong whatever the value; and the code for a value in
 * another binary form than the column's, which is a fault of the column. A text that is too long
 * for the type `name` has a code of a class that else speaks of what is there.
 */
const notOfValue = /^(08|0A|22P03|25|28|2F|38|39|3D|3F|40|42(?!622)|53|55|57|58|72|F0|HV|XX)/;
/** The table has an event that excludes this one: by a unique index, or another constraint. */
const excluded = new Set(["23505", "23P01"]);

/** What a table was found to take of some events. */
interface Tried {
  readonly refused: Refused;
  readonly taken: number;
}

/**
 * A value that the server, or what the user has added to the table, does not take: data exception,
 * limit, constraint, or whatever a trigger raises. That there is no part for a day is no such
 * thing.
 */
export function isOfValue(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  const { code = "", constraint, column, dataType, routine } = error;
  if (routine === raised) return true;
  // The server names only the domain where that is what is never null.
  if (code.startsWith("23")) return (constraint ?? column ?? dataType) !== undefined;
  return !notOfValue.test(code);
}

/** Those whose text or JSON no table of PostgreSQL takes. */
export async function refusedByServer(
  client: Client,
  events: readonly SinkRecord[],
): Promise<Refused> {
  const found: Refused = new Map();
  for (const event of events) {
    const name = textNames.find((one) => event[one].includes("\0"));
    if (name !== undefined) found.set(event, `its ${name} has the character U+0000`);
  }
  const texts = (["properties", "set", "setOnce", "unset"] as const).map((name) =>
    arrayOf(events.map(({ [name]: json }) => (json === undefined ? null : textOf(json)))),
  );
  for (const [at, fault] of await selectRows(client, faultsSql, texts)) {
    const event = events[(at as number) - 1];
    if (event !== undefined) found.set(event, String(fault));
  }
  return found;
}

/**
 * Those that the table does not take, whatever the user has added to it: an index on an expression,
 * a constraint, a generated column or a trigger may refuse a value. Of `fresh`, each uuid is there
 * once; where its event is refused, the next one of `events` that has the uuid is tried. Tried by
 * `copy`, by halves, in a transaction that the caller has begun and rolls back.
 */
export async function refusedByTable(
  client: Client,
  { fresh, events }: { fresh: readonly SinkRecord[]; events: readonly SinkRecord[] },
  copy: (some: readonly SinkRecord[]) => Promise<void>,
): Promise<Tried> {
  const refused: Refused = new Map();
  let taken = 0;
  const next = nextCopies(events);
  const untried = [fresh];
  await client.query("SAVEPOINT before_some");
  for (let some = untried.pop(); some !== undefined; some = untried.pop()) {
    try {
      await copy(some);
      await client.query(keepSql);
      taken += some.length;
    } catch (error) {
      if (!isOfValue(error)) throw error;
      await client.query("ROLLBACK TO SAVEPOINT before_some");
      const half = some.length >> 1;
      if (half > 0) untried.push(some.slice(half), some.slice(0, half));
      else {
        const event = some[0]!;
        refused.set(event, (error as Error).message);
        const another = next.get(event);
        if (another !== undefined) untried.push([another]);
      }
    }
  }
  return { refused, taken };
}

/** Whether the table takes any of them, or has one that excludes it. Tried one by one. */
export async function takesSome(
  client: Client,
  events: readonly SinkRecord[],
  copy: (some: readonly SinkRecord[]) => Promise<void>,
): Promise<boolean> {
  await client.query("SAVEPOINT before_some");
  for (const event of events) {
    try {
      await copy([event]);
      await client.query(keepSql);
      return true;
    } catch (error) {
      if (!isOfValue(error)) throw error;
      if (excluded.has((error as DatabaseError).code ?? "")) return true;
      await client.query("ROLLBACK TO SAVEPOINT before_some");
    }
  }
  return false;
}

/** Whether the table takes, under another uuid, an event that it has. */
export async function takesAgain(client: Client, columns: readonly string[]): Promise<boolean> {
  const values = columns.map((name) => (name === "uuid" ? "$1::uuid" : name));
  const sql = `INSERT INTO events (${columns.join(", ")})
    SELECT ${values.join(", ")} FROM events LIMIT 1`;
  await client.query("SAVEPOINT before_some");
  try {
    const { rowCount } = await client.query(sql, [randomUUID()]);
    await client.query(keepSql);
    return rowCount === 1;
  } catch (error) {
    if (!isOfValue(error)) throw error;
    await client.query("ROLLBACK TO SAVEPOINT before_some");
    return excluded.has((error as DatabaseError).code ?? "");
  }
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}
