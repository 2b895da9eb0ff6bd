// Opens the configured database. Only the database client that is needed is loaded. The connection
// is opened at the first call.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import type { PeopleErasure } from "./erase-rows.ts";
import type { EffectsReader, EffectsStore } from "./port.ts";

export type StorePlace =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string };

interface StoreSettings {
  readonly effectsUrl: string;
  readonly dataDir: string;
}

export type OpenReader = EffectsReader & { close(): Promise<void> };

export function storePlace({ effectsUrl, dataDir }: StoreSettings): StorePlace {
  if (!effectsUrl.startsWith("sqlite:")) return { kind: "postgres", url: effectsUrl };
  const named = effectsUrl.slice("sqlite:".length);
  const file = named === "" ? path.join(dataDir, "effects.sqlite") : named;
  return { kind: "sqlite", file: linkedFile(path.resolve(file)) };
}

export function shownPlace(place: StorePlace): string {
  if (place.kind === "sqlite") return place.file;
  const { host, pathname, searchParams } = new URL(place.url);
  return `PostgreSQL at ${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
}

export async function storeAt(place: StorePlace): Promise<EffectsStore> {
  return place.kind === "postgres"
    ? new (await import("./postgres/store.ts")).PostgresStore(place)
    : new (await import("./sqlite/store.ts")).SqliteStore(place);
}

export async function readerAt(place: StorePlace): Promise<OpenReader> {
  return place.kind === "postgres"
    ? new (await import("./postgres/reader.ts")).PostgresReader(place)
    : new (await import("./sqlite/reader.ts")).SqliteReader(place);
}

export async function erasureAt(place: StorePlace): Promise<PeopleErasure> {
  return place.kind === "postgres"
    ? new (await import("./postgres/erasure.ts")).PostgresErasure(place)
    : new (await import("./sqlite/erasure.ts")).SqliteErasure(place);
}

const linksMax = 40;

/**
 * Returns the real path of the file. Symbolic links are followed, because the lock and the backup
 * of a rebuild must be next to the file.
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
    return false;
  }
}
