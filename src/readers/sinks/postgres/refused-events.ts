// Inserts events one by one in one statement. Returns the events that PostgreSQL refuses.

import { type Client, DatabaseError } from "pg";
import { Ascii, stringEnd } from "../../../platform/base/ascii.ts";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { type EventColumn, type SinkRecord, textOf } from "../sink-records.ts";

export type Refused = Map<SinkRecord, string>;

type Report = Pick<DatabaseError, "code" | "constraint" | "column" | "dataType"> & {
  readonly isRaised: boolean;
};

const raiseRoutine = "exec_stmt_raise";
/**
 * Error codes that are never caused by a value. The code 22P03 means that a column does not accept
 * the binary form of its value.
 */
const notOfValue = /^(08|0A|22P03|25|28|2F|38|39|3D|3F|40|42|53|55|57|58|72|F0|HV|XX)/;

export function isOfValue(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return refusesValue({ ...error, isRaised: error.routine === raiseRoutine });
}

function refusesValue({ code = "", constraint, column, dataType, isRaised }: Report): boolean {
  if (isRaised) return true;
  // For a NOT NULL violation of a domain, the error contains the domain instead of a column.
  if (code.startsWith("23")) return Boolean(constraint || column || dataType);
  return !notOfValue.test(code);
}

interface Tried {
  readonly events: readonly SinkRecord[];
  readonly keys: readonly number[];
}

/** Inserts each event. Rejects if an error was not caused by a value. */
export async function insertEach(
  client: Client,
  columns: readonly EventColumn[],
  { events, keys }: Tried,
): Promise<Refused> {
  const arrays = columns.map((column) =>
    arrayOf(events.map((event) => storedValue(event, column))),
  );
  await client.query(cursorSql(columns), [arrayOf(keys), ...arrays]);
  await client.query(eachSql(columns));
  const [row] = await selectRows(client, "SELECT current_setting('penstock.refused')");
  const refused: Refused = new Map();
  for (const fault of JSON.parse(String(row?.[0])) as (Report & {
    at: number;
    message: string;
  })[]) {
    const { at, message, code } = fault;
    if (!refusesValue(fault))
      throw Object.assign(new DatabaseError(message, message.length, "error"), { code });
    refused.set(events[at - 1]!, message);
  }
  return refused;
}

/** Times are integers in milliseconds, because doubles have too few digits. */
function cursorSql(columns: readonly EventColumn[]): string {
  const types = columns.map(
    ({ type }, at) => `$${at + 2}::${type === "time" ? "bigint" : "text"}[]`,
  );
  const values = columns.map(({ name, type }) =>
    type === "time"
      ? `timestamptz 'epoch' + "${name}" / 86400000 * interval '24 hours'
        + "${name}" % 86400000 * interval '1 millisecond' AS "${name}"`
      : `"${name}"`,
  );
  return `DECLARE tried NO SCROLL CURSOR FOR SELECT at, key, ${values.join(", ")}
    FROM unnest($1::integer[], ${types.join(", ")}) WITH ORDINALITY
      AS tried (key, ${columns.map(({ name }) => `"${name}"`).join(", ")}, at)`;
}

function eachSql(columns: readonly EventColumn[]): string {
  const assigned = columns.map(({ name }) => `target."${name}" := given."${name}";`);
  const values = columns.map(({ name }) => `target."${name}"`);
  return `DO $each$
DECLARE
  tried refcursor := 'tried';
  given record;
  target events%ROWTYPE;
  written integer := -1;
  code text; message text; place text; broken text; named text; kind text;
  refused jsonb[] := '{}';
BEGIN
  SET CONSTRAINTS ALL IMMEDIATE;
  LOOP
    FETCH tried INTO given;
    EXIT WHEN NOT FOUND;
    CONTINUE WHEN given.key = written;
    BEGIN
      ${assigned.join("\n      ")}
      INSERT INTO events (${columns.map(({ name }) => `"${name}"`).join(", ")})
        VALUES (${values.join(", ")});
      written := given.key;
    EXCEPTION WHEN OTHERS OR assert_failure THEN
      GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        place = PG_EXCEPTION_CONTEXT, broken = CONSTRAINT_NAME, named = COLUMN_NAME,
        kind = PG_DATATYPE_NAME;
      refused := refused || jsonb_build_object('at', given.at, 'code', code, 'message', message,
        'constraint', broken, 'column', named, 'dataType', kind,
        'isRaised', split_part(place, chr(10), 1) LIKE '% RAISE');
    END;
  END LOOP;
  PERFORM set_config('penstock.refused', to_json(refused)::text, true);
  CLOSE tried;
END $each$`;
}

function storedValue(
  event: SinkRecord,
  { type, isOptional, of }: EventColumn,
): string | number | null {
  if (type === "boolean") return String(of(event));
  if (type === "time") {
    const ms = of(event);
    return Number.isNaN(ms) ? null : ms;
  }
  if (type === "object" || type === "names") {
    const json = of(event);
    return json === undefined ? null : textOf(json);
  }
  const text = of(event);
  return isOptional && text === "" ? null : text;
}

/** Maximum exponent of a number. It is higher than the maximum of doubles, 308. */
const exponentMax = 999;
/** Maximum sum of all exponents, because jsonb stores about this number of digits. */
const exponentSumMax = 67_108_864;
const letterE = 0x65;
const zero = 0x30;
const nine = zero + 9;
const lowerCase = 0x20;

/** Returns true if the JSON contains a number that jsonb would expand to thousands of digits. */
export function hasHugeNumber(json: Uint8Array): boolean {
  const { length } = json;
  let sum = 0;
  for (let at = 0; at < length; at++) {
    const byte = json[at]!;
    if (byte === Ascii.Quote) at = stringEnd(json, at + 1);
    else if ((byte | lowerCase) === letterE && isDigit(json[at - 1])) {
      const exponent = exponentAt(json, at + 1);
      sum += exponent;
      if (exponent > exponentMax || sum > exponentSumMax) return true;
    }
  }
  return false;
}

function exponentAt(json: Uint8Array, start: number): number {
  let at = start;
  if (json[at] === Ascii.Plus || json[at] === Ascii.Minus) at++;
  let exponent = 0;
  for (; isDigit(json[at]) && exponent <= exponentMax; at++)
    exponent = 10 * exponent + json[at]! - zero;
  return exponent;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine;
}
