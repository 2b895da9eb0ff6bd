// Looks up the rows for the next batch while the previous batch is being written. A row may be one
// commit old. The caller keeps the newer row in memory until the commit ends.

import { StoreError, TooLargeError } from "../../../../platform/base/store-error.ts";
import { indicesOf, type Row, type Value } from "../../../../platform/base/table.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type { GroupName } from "../port.ts";
import { memberAt } from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";
import { lookupBytesMax } from "../shared-sql.ts";
import { type Database, ReadingSide, remedyOfDamage } from "./database.ts";
import { selectSql, uuidTextsOf } from "./statements.ts";

const cacheKiB = 64 * 1024;
const withUuidTexts = uuidTextsOf(tables.members);
const groupAt = indicesOf(tables.groups);

export class SqliteLookups extends ReadingSide {
  constructor(file: string, database?: Database) {
    super(file, cacheKiB, database);
  }

  members(projectId: string, distinctIds: readonly string[]): Value[][] {
    return this.read(() => {
      const found = new Map<Value, Value[]>();
      let bytes = 0;
      let uuids = distinctIds.map((id) => personUuid(projectId, id));
      const sql = `${selectSql(tables.members)} WHERE project_id = ?
        AND uuid IN (SELECT unhex(value, '-') FROM json_each(?))`;
      while (uuids.length > 0) {
        const rows: Value[][] = [];
        for (const stored of this.prepared(sql).iterate(projectId, JSON.stringify(uuids))) {
          const row = withUuidTexts(stored);
          bytes += (row[memberAt.property_bytes] as number | null) ?? 0;
          checkBytes(bytes);
          rows.push(row);
          found.set(row[memberAt.uuid]!, row);
        }
        const next = new Set(rows.map((row) => row[memberAt.merged_into] as string | null));
        uuids = [...next].filter((uuid) => uuid !== null && !found.has(uuid)) as string[];
      }
      const rows = [...found.values()];
      for (const row of rows) {
        const mergedInto = row[memberAt.merged_into]!;
        if (mergedInto !== null)
          row[memberAt.merged_into] = this.#idOf(found.get(mergedInto), mergedInto);
      }
      return rows;
    });
  }

  groups(names: readonly GroupName[]): Value[][] {
    const sql = `${selectSql(tables.groups)} WHERE project_id = ? AND type = ? AND key = ?`;
    return this.read(() => {
      let bytes = 0;
      return names.flatMap(({ projectId, type, key }) => {
        const rows = this.prepared(sql).all(projectId, type, key);
        for (const row of rows) bytes += row[groupAt.property_bytes] as number;
        checkBytes(bytes);
        return rows;
      });
    });
  }

  groupTypes(projectIds: readonly string[]): Value[][] {
    const sql = `${selectSql(tables.groupTypes)} WHERE project_id = ?`;
    return this.read(() => projectIds.flatMap((id) => this.prepared(sql).all(id)));
  }

  #idOf(row: Row | undefined, uuid: Value): Value {
    const id = row?.[memberAt.distinct_id];
    if (id !== undefined) return id;
    throw new StoreError(
      `cannot read ${this.file}: it is damaged: no row for ${uuid}: ${remedyOfDamage}`,
    );
  }
}

function checkBytes(bytes: number): void {
  if (bytes > lookupBytesMax)
    throw new TooLargeError("cannot look up rows: their properties are too large");
}
