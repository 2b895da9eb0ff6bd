// Opens the effects database, also if `penstock effects` does not run.

import { StoreError } from "../../platform/base/store-error.ts";
import { asOfJson } from "../../readers/effects/http/shapes.ts";
import {
  type OpenReader,
  readerAt,
  shownPlace,
  storePlace,
} from "../../readers/effects/store/open.ts";
import type { ConfiguredCommand } from "../configured-command.ts";
import { CommandError } from "../context.ts";
import { mustBeProjectId } from "../registered-project.ts";
import { noteAge } from "./freshness.ts";

/** Throws a CommandError if the database cannot be read or does not exist. */
export async function withReader<T>(
  { config }: Pick<ConfiguredCommand, "config">,
  work: (reader: OpenReader) => Promise<T>,
): Promise<T> {
  const place = storePlace(config);
  const reader = await readerAt(place);
  try {
    return await work(reader);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const where = place.kind === "sqlite" ? "" : ` (${shownPlace(place)})`;
    throw new CommandError(`${error.message}${where}`);
  } finally {
    await reader.close();
  }
}

/**
 * Returns the `as_of` member of a JSON result. Must be read before the results, which may then be
 * newer, but not older.
 */
async function asOfMember(reader: OpenReader): Promise<string> {
  return `"as_of":${asOfJson(await reader.applied())}`;
}

/** If the database lags, first prints the age of the data. JSON output has `as_of` instead. */
export async function readProject(
  command: ConfiguredCommand,
  { project, json }: { readonly project: string; readonly json: boolean },
  work: (reader: OpenReader, asOf: string) => Promise<void>,
): Promise<void> {
  mustBeProjectId("read the effects", project);
  await withReader(command, async (reader) => {
    if (!json) await noteAge(command, reader);
    await work(reader, await asOfMember(reader));
  });
}
