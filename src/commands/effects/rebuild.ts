// The command `penstock effects rebuild` builds a database from the streams and replaces the
// current database with it. `penstock effects` must not be running. The command `verify` compares
// the two databases.

import { mkdtempSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { type FileLock, makeFolder } from "../../platform/base/files.ts";
import { atMost } from "../../platform/base/retry.ts";
import { StoreError } from "../../platform/base/store-error.ts";
import { managerOf } from "../../platform/nats/api.ts";
import { erasedProjects } from "../../platform/nats/erased-messages.ts";
import { streamName } from "../../platform/nats/names.ts";
import { effectsUrl } from "../../platform/settings/parsers.ts";
import {
  requireInstallation,
  takeForInstallation,
} from "../../readers/effects/store/installation.ts";
import {
  readerAt,
  type StorePlace,
  shownPlace,
  storeAt,
  storePlace,
} from "../../readers/effects/store/open.ts";
import type { EffectsReader, EffectsStore } from "../../readers/effects/store/port.ts";
import {
  appliedOf,
  RebuildError,
  type RebuildOptions,
  rebuild,
} from "../../readers/effects/writer/rebuild.ts";
import { type Verified, verify } from "../../readers/effects/writer/verify.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { counted } from "../terminal.ts";

export interface RebuildCommandOptions {
  readonly into?: string;
  readonly acceptMissing: boolean;
}

const progressEveryMs = 5_000;
const closeMsMax = 500;
const questionMs = 5_000;

export async function rebuildEffects(
  command: ConfiguredCommand,
  options: RebuildCommandOptions,
): Promise<void> {
  const place = storePlace(command.config);
  if (place.kind === "sqlite") requireOwner("rebuild", command, fileAndFolder(place.file));
  await withoutStack("rebuild", async () => {
    if (options.into !== undefined) await intoAnother(command, place, options);
    else if (place.kind === "sqlite") await inPlaceOfFile(command, place.file, options);
    else await inPlaceOfSchema(command, place, options);
  });
}

export async function verifyEffects(
  command: ConfiguredCommand,
  options: { readonly json: boolean; readonly acceptMissing: boolean },
): Promise<void> {
  const place = storePlace(command.config);
  const dataDir = path.resolve(command.config.dataDir);
  requireOwner("verify", command, place.kind === "sqlite" ? fileAndFolder(place.file) : [dataDir]);
  const reader = await readerAt(place);
  let folder: string | undefined;
  let into: EffectsStore | undefined;
  try {
    await withoutStack("verify", async () => {
      await requireInstallation(reader, installationOf(command, place));
      folder = comparisonFolder(place, dataDir);
      const made = await storeAt({ kind: "sqlite", file: path.join(folder, "effects.sqlite") });
      into = made;
      await made.open();
      const { acceptMissing } = options;
      const found = await atNats(command, async (connection) => {
        const erasedProjects = await erasedProjectsOf(connection, command);
        return await verify({
          ...buildOptions(command, connection),
          reader,
          erasedProjects,
          acceptMissing,
          into: made,
        });
      });
      tellVerified(command, found, options.json);
    });
  } finally {
    await closedSoon(command, [reader.close(), into?.close()]);
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Creates a folder for the second database. If possible, it is next to the first database, because
 * the folder for temporary files may be too small.
 */
export function comparisonFolder(place: StorePlace, dataDir: string): string {
  if (place.kind === "sqlite") {
    try {
      return mkdtempSync(`${place.file}.verify-`);
    } catch {}
  }
  try {
    makeFolder(dataDir);
    return mkdtempSync(path.join(dataDir, "effects.verify-"));
  } catch (error) {
    throw new CommandError(
      `verify: cannot create the comparison database in ${dataDir} (${(error as Error).message}). Set PENSTOCK_DATA_DIR (--data-dir) to a writable folder with enough free space`,
    );
  }
}

function tellVerified(command: ConfiguredCommand, found: Verified, json: boolean): void {
  const { messages, missing, differences, explained } = found;
  const isSame = differences.length === 0;
  if (json) {
    const report = { same: isSame, messages, missing, differences, explained };
    say(command, JSON.stringify(report, undefined, 2));
  } else {
    say(
      command,
      isSame
        ? `the database matches the streams (${counted(messages, "message")})`
        : `the database differs from the streams (${counted(messages, "message")}). First differing lines (- database, + rebuilt):`,
    );
    for (const line of [...differences, ...explained]) say(command, line);
  }
  if (!isSame) throw new CommandError("");
}

async function inPlaceOfFile(
  command: ConfiguredCommand,
  file: string,
  { acceptMissing }: RebuildCommandOptions,
): Promise<void> {
  const { createReplacement, removeDatabase, replaceDatabase } = await import(
    "../../readers/effects/store/sqlite/replace-file.ts"
  );
  const { takeWriterLock } = await import("../../readers/effects/store/sqlite/database.ts");
  const rebuilt = `${file}.rebuilt`;
  const from = { kind: "sqlite", file } as const;
  const reader = await readerAt(from);
  let lock: FileLock | undefined;
  let kept: string | undefined;
  try {
    await reader.applied();
    // The lock is held until the new database has its name. Otherwise, a standby could write to the
    // old database.
    lock = takeWriterLock(file);
    createReplacement({ file, rebuilt });
    const into = await storeAt({ kind: "sqlite", file: rebuilt });
    await fill(command, reader, { from, into, shown: rebuilt, acceptMissing });
    await reader.close();
    kept = replaceDatabase({ file, rebuilt });
  } finally {
    await closedSoon(command, [reader.close()]);
    if (lock !== undefined && kept === undefined) removeDatabase(rebuilt);
    lock?.close();
  }
  say(command, `Rebuilt ${file}. The previous database is ${kept}`);
}

async function inPlaceOfSchema(
  command: ConfiguredCommand,
  place: StorePlace & { readonly kind: "postgres" },
  { acceptMissing }: RebuildCommandOptions,
): Promise<void> {
  const { PostgresStore } = await import("../../readers/effects/store/postgres/store.ts");
  const reader = await readerAt(place);
  const into = new PostgresStore({ url: place.url, isRebuilt: true });
  let kept: string | undefined;
  const shown = shownPlace(place);
  try {
    await fill(command, reader, {
      from: place,
      into,
      shown,
      acceptMissing,
      done: async () => {
        kept = await into.takePlace();
      },
      undone: () => into.dropRebuilt(),
    });
  } finally {
    await closedSoon(command, [reader.close()]);
  }
  say(command, `Rebuilt ${shown}. The previous tables are in the schema ${kept}`);
}

async function intoAnother(
  command: ConfiguredCommand,
  from: StorePlace,
  { into: url = "", acceptMissing }: RebuildCommandOptions,
): Promise<void> {
  const place = storePlace({ effectsUrl: checkedUrl(url), dataDir: command.config.dataDir });
  const reader = await readerAt(from);
  const shown = shownPlace(place);
  try {
    const into = await storeAt(place);
    await fill(command, reader, { from, into, shown, acceptMissing, isOther: true });
  } finally {
    await closedSoon(command, [reader.close()]);
  }
  say(command, `Built ${shown}. Set PENSTOCK_EFFECTS_URL to use it.`);
}

interface Filled {
  readonly from: StorePlace;
  readonly into: EffectsStore;
  readonly shown: string;
  readonly acceptMissing: boolean;
  readonly isOther?: boolean;
  readonly done?: () => Promise<void>;
  readonly undone?: () => Promise<void>;
}

async function fill(
  command: ConfiguredCommand,
  reader: EffectsReader,
  { from, into, shown, acceptMissing, isOther = false, done, undone }: Filled,
): Promise<void> {
  const installation = installationOf(command, from);
  await requireInstallation(reader, installation);
  const version = await reader.version();
  let isDone = false;
  let isOpen = false;
  try {
    await into.open();
    isOpen = true;
    if (isOther) await takeForInstallation(into, { ...installation, shown });
    else await into.bindTo(installation.prefix);
    const applied = await appliedOf(reader);
    const { messages, missing } = await atNats(command, (connection) =>
      rebuild({ ...buildOptions(command, connection), applied, into, acceptMissing }),
    );
    // An erasure may have removed persons from the old database that the new database contains.
    if ((await reader.version()) !== version)
      throw new RebuildError(
        "the database changed during the rebuild, for example by an erasure. Run the command again",
      );
    const gone = missing === 0 ? "" : `; ${missing} are no longer in the streams`;
    note(command, `${messages} messages applied${gone}`);
    await done?.();
    isDone = true;
  } finally {
    if (isOpen && !isDone) await closedSoon(command, [undone?.()]);
    await closedSoon(command, [into.close()]);
  }
}

type Build = Pick<RebuildOptions, "connection" | "prefix" | "people" | "signal" | "onProgress">;

function buildOptions(command: ConfiguredCommand, connection: NatsConnection): Build {
  const { subjectPrefix: prefix, effectsLargeBytesMax: largeBytesMax } = command.config;
  const { stop: signal } = command.context;
  return { connection, prefix, people: { largeBytesMax }, signal, onProgress: progress(command) };
}

async function erasedProjectsOf(
  connection: NatsConnection,
  { config }: ConfiguredCommand,
): Promise<ReadonlySet<string>> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  return await erasedProjects(manager, streamName(config.subjectPrefix, "live", 0));
}

async function closedSoon(
  { context: { stop } }: ConfiguredCommand,
  work: readonly (Promise<unknown> | undefined)[],
): Promise<void> {
  const all = Promise.allSettled(work);
  if (stop.aborted) await atMost(closeMsMax, all);
  else await all;
}

function installationOf({ config }: ConfiguredCommand, place: StorePlace) {
  return { prefix: config.subjectPrefix, shown: shownPlace(place) };
}

function checkedUrl(text: string): string {
  try {
    return effectsUrl(text);
  } catch (error) {
    throw new CommandError(`--into: ${(error as Error).message}`, usageExitCode);
  }
}

async function withoutStack(name: "rebuild" | "verify", work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof RebuildError) throw new CommandError(`${name}: ${error.message}`);
    if (!(error instanceof StoreError)) throw error;
    throw new CommandError(error.message);
  }
}

async function atNats<T>(
  { config, context }: ConfiguredCommand,
  work: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await openNats(findNats(config, context.host));
  try {
    return await work(connection);
  } finally {
    await closedSoon({ config, context }, [connection.close()]);
  }
}

function progress(command: ConfiguredCommand): (messages: number) => void {
  let saidMonotonicMs = performance.now();
  return (messages) => {
    if (performance.now() - saidMonotonicMs < progressEveryMs) return;
    saidMonotonicMs = performance.now();
    note(command, `${messages} messages so far`);
  };
}

/**
 * Rejects files of another user if this user is root. Otherwise, the other user could replace a
 * file by a link to any file.
 */
function requireOwner(
  name: string,
  { context: { host } }: ConfiguredCommand,
  files: readonly string[],
): void {
  if (host.getuid?.() !== 0) return;
  for (const owned of files) {
    const uid = statSync(owned, { throwIfNoEntry: false })?.uid ?? 0;
    if (uid !== 0)
      throw new CommandError(
        `${name}: user ${uid} owns ${owned}. Run this as that user, not as root, for example with sudo -u '#${uid}'`,
      );
  }
}

function fileAndFolder(file: string): readonly string[] {
  return [file, path.dirname(file)];
}
