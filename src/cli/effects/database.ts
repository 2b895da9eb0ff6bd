// How the commands reach the database of the effects: they read it themselves, so they work whether
// or not `penstock effects` runs. What they print is a person's or a program's to read.

import { asOfJson } from "../../effects/http/shapes.ts";
import { type OpenReader, readerAt, shownPlace, storePlace } from "../../effects/store/open.ts";
import { StoreError } from "../../effects/store/store-error.ts";
import { isProjectId } from "../../projects/registry/bucket.ts";
import type { Config } from "../../settings/config.ts";
import { type CommandContext, CommandError, usageExitCode } from "../context.ts";
import { forTerminal } from "../terminal.ts";

export interface EffectsCommand {
  readonly config: Config;
  readonly context: CommandContext;
}

/** Throws a CommandError that says what is wrong with the database, or that there is none yet. */
export async function withReader<T>(
  { config }: Pick<EffectsCommand, "config">,
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

export function requireProject(id: string): void {
  if (isProjectId(id)) return;
  const message = `the project's id must match [A-Za-z0-9_-]{1,64}: got "${id}"`;
  throw new CommandError(message, usageExitCode);
}

/**
 * What ends an object of results: ask for it before them, so that they are at least as new as it
 * says. A commit in between may make them newer.
 */
export async function asOfMember(reader: OpenReader): Promise<string> {
  return `"as_of":${asOfJson(await reader.applied())}`;
}

export function say({ context }: EffectsCommand, line: string): void {
  context.stdout.write(`${forTerminal(line)}\n`);
}

/** A remark beside the result, on standard error. */
export function note({ context }: EffectsCommand, line: string): void {
  context.stderr.write(`${forTerminal(line)}\n`);
}
