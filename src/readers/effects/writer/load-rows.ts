// Reads the rows that a batch needs from the store, of all projects together no more than may be in
// memory at once.

import { TooLargeError } from "../../../platform/base/store-error.ts";
import type { Loaded } from "../people/people.ts";
import type { Missing } from "../people/wanted.ts";
import { lookupBytesMax } from "../store/bounds.ts";
import type { EffectsStore } from "../store/port.ts";
import type { MemberRow } from "../types.ts";

type Store = Pick<EffectsStore, "members" | "groups" | "groupTypes">;

/** Projects whose members are asked for at once: while some are read, others are on their way. */
const projectsAtOnce = 4;

/** Rejects with a TooLargeError where there is too much: then fewer are to be asked for. */
export async function loadRows(store: Store, missing: Missing): Promise<Loaded> {
  // All are awaited together: of several that fail, none is left without somebody who hears it.
  const [members, groups, groupTypes] = await Promise.all([
    loadMembers(store, missing.members),
    missing.groups.length === 0 ? [] : store.groups(missing.groups),
    missing.groupTypes.length === 0 ? [] : store.groupTypes(missing.groupTypes),
  ]);
  return { members, groups, groupTypes };
}

async function loadMembers(
  store: Store,
  wanted: Missing["members"],
): Promise<readonly MemberRow[]> {
  const left = [...wanted];
  const rows: MemberRow[] = [];
  let bytes = 0;
  const loadNext = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const found = await store.members(...next);
      for (const { person } of found) bytes += person?.propertyBytes ?? 0;
      for (const row of found) rows.push(row);
      if (bytes <= lookupBytesMax) continue;
      left.length = 0;
      throw new TooLargeError("look up rows: their properties are too large together");
    }
  };
  await Promise.all(Array.from({ length: projectsAtOnce }, loadNext));
  return rows;
}
