// In which encoding a database has its texts. Any but UTF-8 has no room for most of what clients
// send, and refuses it only when it comes.

import type { ClientBase } from "pg";
import { StoreError } from "../base/store-error.ts";
import { selectRows } from "./select-rows.ts";

/** Rejects with a StoreError where it is another one. `shown`: where the database is. */
export async function requireUtf8(client: ClientBase, shown: string): Promise<void> {
  const [row] = await selectRows(client, "SHOW server_encoding");
  if (row?.[0] === "UTF8") return;
  throw new StoreError(
    `open PostgreSQL at ${shown}: the database is in ${row?.[0]}: make one in UTF8, as by createdb --encoding=UTF8 --template=template0, and name it`,
  );
}
