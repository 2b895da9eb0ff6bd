// Checks the encoding of a database. An encoding other than UTF-8 rejects most non-ASCII text, and
// only when it is written.

import type { ClientBase } from "pg";
import { StoreError } from "../base/store-error.ts";
import { selectRows } from "./select-rows.ts";

/** Rejects with a StoreError if it is not UTF-8. `shown`: the database in the message. */
export async function requireUtf8(client: ClientBase, shown: string): Promise<void> {
  const [row] = await selectRows(client, "SHOW server_encoding");
  if (row?.[0] === "UTF8") return;
  throw new StoreError(
    `open PostgreSQL at ${shown}: the database is in ${row?.[0]}, but must be in UTF8: create one with createdb --encoding=UTF8 --template=template0, and use that`,
  );
}
