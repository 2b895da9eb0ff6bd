import type { Command } from "commander";
import { CommandError } from "../commands/context.ts";
import type { Config, SettingName } from "../platform/settings/config.ts";
import type { OpenReader } from "../readers/effects/store/open.ts";

export interface PersonOptions {
  readonly withPerson: boolean;
}

export const personSettings: readonly SettingName[] = ["effectsUrl"];

export function withPersons(command: Command): Command {
  return command.option(
    "--with-person",
    "add the uuid of each event's person, from the database of `penstock effects`",
    false,
  );
}

/**
 * Opens the effects database; returns undefined without --with-person. Rejects if the file is
 * missing or the database belongs to another installation. If the database does not respond, the
 * sink waits for it at the first batch.
 */
export async function peopleOf(
  config: Config,
  { withPerson }: PersonOptions,
): Promise<OpenReader | undefined> {
  if (!withPerson) return undefined;
  const { readerAt, shownPlace, storePlace } = await import("../readers/effects/store/open.ts");
  const { OtherInstallationError, requireInstallation } = await import(
    "../readers/effects/store/installation.ts"
  );
  const place = storePlace(config);
  try {
    if (place.kind === "sqlite") {
      const { mustBeReadable } = await import("../readers/effects/store/sqlite/file-access.ts");
      mustBeReadable(place.file);
    }
    const reader = await readerAt(place);
    const installation = { prefix: config.subjectPrefix, shown: shownPlace(place) };
    await requireInstallation(reader, installation).catch((error: unknown) => {
      if (error instanceof OtherInstallationError) throw error;
    });
    return reader;
  } catch (error) {
    throw new CommandError(`--with-person: ${(error as Error).message}`);
  }
}
