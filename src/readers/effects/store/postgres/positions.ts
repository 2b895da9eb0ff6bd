import type { ClientBase } from "pg";
import { selectSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import type { Position } from "../../types.ts";
import { positionsOf } from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";

/** Consistent only within a snapshot transaction, or without another writer. */
export async function readPositions(client: ClientBase): Promise<Position[]> {
  const { positions, trail } = tables;
  return positionsOf({
    rows: await selectRows(client, `${selectSql(positions)} ORDER BY stream`),
    trail: await selectRows(client, `${selectSql(trail)} ORDER BY stream, sequence`),
  });
}
