// Opens the store, the reader or the erasure of the configured database. Loads only that database's client.
// Connects at the first call.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import type { PeopleErasure } from "./erase-rows.ts";
import type { EffectsReader, EffectsStore } from "./port.ts";

export type StorePlace =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string };

interface StoreSettings {
  /** The value of the setting of this name. */
  readonly effectsUrl: string;
  readonly dataDir: string;
}

export type OpenReader = EffectsReader & { close(): Promise<void> };

/** A link is replaced by the file that it points to. */
export function storePlace({ effectsUrl, dataDir }: StoreSettings): StorePlace {
  if (!effectsUrl.startsWith("sqlite:")) return { kind: "postgres", url: effectsUrl };
  const named = effectsUrl.slice("sqlite:".length);
  const file = named === "" ? path.join(dataDir, "effects.sqlite") : named;
  return { kind: "sqlite", file: linkedFile(path.resolve(file)) };
}

/** For people: without user and password. */
export function shownPlace(place: StorePlace): string {
  if (place.kind === "sqlite") return place.file;
  const { host, pathname, searchParams } = new URL(place.url);
  return `PostgreSQL at ${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
}

/** The store is not open yet. */
export async function storeAt(place: StorePlace): Promise<EffectsStore> {
  if (place.kind === "postgres") {
    const { PostgresStore } = await import("./postgres/store.ts");
    return new PostgresStore({ url: place.url });
  }
  const { SqliteStore } = await import("./sqlite/store.ts");
  return new SqliteStore({ file: place.file });
}

/** Works next to a writer, in this process or another. Connects at the first query. */
export async function readerAt(place: StorePlace): Promise<OpenReader> {
  if (place.kind === "postgres") {
    const { PostgresReader } = await import("./postgres/reader.ts");
    return new PostgresReader({ url: place.url });
  }
  const { SqliteReader } = await import("./sqlite/reader.ts");
  return new SqliteReader({ file: place.file });
}

/** Removes persons, with or without a running writer. Connects at the first call. */
export async function erasureAt(place: StorePlace): Promise<PeopleErasure> {
  if (place.kind === "postgres") {
    const { PostgresErasure } = await import("./postgres/erasure.ts");
    return new PostgresErasure({ url: place.url });
  }
  const { SqliteErasure } = await import("./sqlite/erasure.ts");
  return new SqliteErasure({ file: place.file });
}

/** The number of links that Linux follows. */
const linksMax = 40;

/**
 * Resolves a database's name that is a symbolic link: files next to the database (the writer's
 * lock, a rebuild's backup) must be next to the linked file. The file may not exist yet. Returns
 * the name itself if links form a cycle.
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
    // Opening the file fails with the same error, and reports it.
    return false;
  }
}
