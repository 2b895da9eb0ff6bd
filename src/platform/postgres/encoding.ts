import type { ClientBase } from "pg";
import { StoreError } from "../base/store-error.ts";
import { selectRows } from "./select-rows.ts";

/**
 * Rejects with a StoreError if the encoding is not UTF-8: other encodings reject most non-ASCII
 * text, but only when it is written.
 */
export async function requireUtf8(client: ClientBase, shown: string): Promise<void> {
  const [row] = await selectRows(client, "SHOW server_encoding");
  if (row?.[0] === "UTF8") return;
  throw new StoreError(
    `open PostgreSQL at ${shown}: the database is in ${row?.[0]}, but must be in UTF8: create one with createdb --encoding=UTF8 --template=template0, and use that`,
  );
}
