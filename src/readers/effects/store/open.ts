// Opens the store, the reader or the erasure of the configured database. Loads only the client of
// that database, and connects at the first call.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import type { PeopleErasure } from "./erase-rows.ts";
import type { EffectsReader, EffectsStore } from "./port.ts";

export type StorePlace =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string };

interface StoreSettings {
  /** The value of the setting `PENSTOCK_EFFECTS_URL`. */
  readonly effectsUrl: string;
  readonly dataDir: string;
}

export type OpenReader = EffectsReader & { close(): Promise<void> };

/**
 * Returns the location of the database. A symbolic link is replaced by the file that it points to.
 */
export function storePlace({ effectsUrl, dataDir }: StoreSettings): StorePlace {
  if (!effectsUrl.startsWith("sqlite:")) return { kind: "postgres", url: effectsUrl };
  const named = effectsUrl.slice("sqlite:".length);
  const file = named === "" ? path.join(dataDir, "effects.sqlite") : named;
  return { kind: "sqlite", file: linkedFile(path.resolve(file)) };
}

/** Returns the name of the database for messages, without user and password. */
export function shownPlace(place: StorePlace): string {
  if (place.kind === "sqlite") return place.file;
  const { host, pathname, searchParams } = new URL(place.url);
  return `PostgreSQL at ${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
}

/** Creates the store. The caller opens it. */
export async function storeAt(place: StorePlace): Promise<EffectsStore> {
  if (place.kind === "postgres") {
    const { PostgresStore } = await import("./postgres/store.ts");
    return new PostgresStore({ url: place.url });
  }
  const { SqliteStore } = await import("./sqlite/store.ts");
  return new SqliteStore({ file: place.file });
}

/**
 * Creates a reader. It can run next to a writer in any process, and connects at the first query.
 */
export async function readerAt(place: StorePlace): Promise<OpenReader> {
  if (place.kind === "postgres") {
    const { PostgresReader } = await import("./postgres/reader.ts");
    return new PostgresReader({ url: place.url });
  }
  const { SqliteReader } = await import("./sqlite/reader.ts");
  return new SqliteReader({ file: place.file });
}

/**
 * Creates the erasure. It can run next to a writer in any process, and connects at the first call.
 */
export async function erasureAt(place: StorePlace): Promise<PeopleErasure> {
  if (place.kind === "postgres") {
    const { PostgresErasure } = await import("./postgres/erasure.ts");
    return new PostgresErasure({ url: place.url });
  }
  const { SqliteErasure } = await import("./sqlite/erasure.ts");
  return new SqliteErasure({ file: place.file });
}

/** Maximum number of links that are followed, as in Linux. */
const linksMax = 40;

/**
 * Resolves a database's name that is a symbolic link, because files next to the database (the
 * writer's lock, a rebuild's backup) must be next to the linked file. The file need not exist.
 * Returns the name itself if links form a cycle.
 */
function linkedFile(name: string): string {
  let file = name;
  for (let links = 0; links <= linksMax; links++) {
    if (!isLink(file)) return file;
    file = path.resolve(realpathSync(path.dirname(file)), readlinkSync(file));
  }
  return name;
}

function isLink(file: string): boolean {
  try {
    return lstatSync(file).isSymbolicLink();
  } catch {
    // Opening the file later fails with the same error and reports it.
    return false;
  }
}
