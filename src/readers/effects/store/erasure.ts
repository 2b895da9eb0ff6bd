// Opens the erasure of persons for the configured database. Connects at the first call.

import type { PeopleErasure } from "./erase-rows.ts";
import type { StorePlace } from "./open.ts";

export async function erasureAt(place: StorePlace): Promise<PeopleErasure> {
  if (place.kind === "postgres") {
    const { PostgresErasure } = await import("./postgres/erasure.ts");
    return new PostgresErasure({ url: place.url });
  }
  const { SqliteErasure } = await import("./sqlite/erasure.ts");
  return new SqliteErasure({ file: place.file });
}
