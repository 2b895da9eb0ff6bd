import type { ClientBase } from "pg";
import type { Value } from "../base/table.ts";

export async function selectRows(
  client: ClientBase,
  text: string,
  values: readonly Value[] = [],
): Promise<Value[][]> {
  const { rows } = await client.query<Value[]>({ text, values: [...values], rowMode: "array" });
  return rows;
}
