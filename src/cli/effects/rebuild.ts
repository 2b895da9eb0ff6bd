// `penstock effects rebuild` and `verify`: make the database anew out of the streams, to take the
// place of the one there is, or only to be compared with it. Both need NATS, and only rebuild needs
// that no `penstock effects` runs.

import path from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import type { FileLock } from "../../base/file-lock.ts";
import { StoreError } from "../../base/store-error.ts";
import { requireInstallation, takeForInstallation } from "../../effects/store/installation.ts";
import {
  readerAt,
  type StorePlace,
  shownPlace,
  storeAt,
  storePlace,
} from "../../effects/store/open.ts";
import type { EffectsReader, EffectsStore } from "../../effects/store/port.ts";
import { rebuild } from "../../effects/writer/rebuild.ts";
import { RebuildError } from "../../effects/writer/rebuild-error.ts";
import { verify } from "../../effects/writer/verify.ts";
import { effectsUrl } from "../../settings/parsers.ts";
import { type ConfiguredCommand, note, say } from "../configured-command.ts";
import { CommandError, usageExitCode } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { actAsOwner } from "./as-owner.ts";

export interface RebuildCommandOptions {
  /** Another database to make, in place of taking the place of the one there is. */
  readonly into?: string;
  readonly acceptMissing: boolean;
}

const progressEveryMs = 5_000;

export async function rebuildEffects(
  command: ConfiguredCommand,
  options: RebuildCommandOptions,
): Promise<void> {
  const place = storePlace(command.config);
  if (place.kind === "sqlite") actAsOwner(command, place.file);
  await told(async () => {
    if (options.into !== undefined) await intoAnother(command, place, options);
    else if (place.kind === "sqlite") await inPlace(command, place.file, options);
    else {
      throw new CommandError(
        "rebuild: name an empty database with --into, and take it as PENSTOCK_EFFECTS_URL afterwards",
        usageExitCode,
      );
    }
  });
}

export async function verifyEffects(
  command: ConfiguredCommand,
  options: { readonly json: boolean; readonly acceptMissing: boolean },
): Promise<void> {
  const { comparisonFile } = await import("./comparison-file.ts");
  const { removeDatabase } = await import("../../effects/store/sqlite/replace-file.ts");
  const place = storePlace(command.config);
  actAsOwner(command, place.kind === "sqlite" ? place.file : path.resolve(command.config.dataDir));
  const reader = await readerAt(place);
  let file: string | undefined;
  let into: EffectsStore | undefined;
  try {
    await told(async () => {
      // Asked first, so that a database that is not there is told before NATS is looked for.
      await requireInstallation(reader, installationOf(command, place));
      file = comparisonFile(place, command.config.dataDir);
      const made = await storeAt({ kind: "sqlite", file });
      into = made;
      await made.open();
      const { acceptMissing } = options;
      const { subjectPrefix: prefix, effectsLargeBytesMax: largeBytesMax } = command.config;
      const found = await atNats(command, (connection) =>
        verify({
          ...{ connection, prefix, reader, acceptMissing, people: { largeBytesMax } },
          ...{ into: made, onProgress: progress(command) },
        }),
      );
      const { messages, missing, differences } = found;
      const isSame = differences.length === 0;
      if (options.json)
        say(
          command,
          JSON.stringify({ same: isSame, messages, missing, differences }, undefined, 2),
        );
      else {
        say(
          command,
          isSame
            ? `the database is what ${messages} messages of the streams make`
            : `the database is not what ${messages} messages of the streams make; the first lines that differ (- in the database, + made anew):`,
        );
        for (const line of differences) say(command, line);
      }
      if (!isSame) throw new CommandError("");
    });
  } finally {
    await reader.close();
    await into?.close();
    if (file !== undefined) removeDatabase(file);
  }
}

/** Beside the file, which it replaces at the end; the old one is kept under another name. */
async function inPlace(
  command: ConfiguredCommand,
  file: string,
  { acceptMissing }: RebuildCommandOptions,
): Promise<void> {
  const { makeBeside, replaceDatabase } = await import(
    "../../effects/store/sqlite/replace-file.ts"
  );
  const { takeWriterLock } = await import("../../effects/store/sqlite/writer-lock.ts");
  const anew = `${file}.rebuilt`;
  const from = { kind: "sqlite", file } as const;
  const reader = await readerAt(from);
  let lock: FileLock | undefined;
  let kept: string;
  try {
    // A reader says so when there is no file; the lock would be made all the same.
    await reader.applied();
    // Until the new one has the name: a process that stands by would write to the old one.
    lock = takeWriterLock(file);
    makeBeside({ file, anew });
    await fill(command, reader, { from, place: { kind: "sqlite", file: anew }, acceptMissing });
    await reader.close();
    kept = replaceDatabase({ file, anew });
  } finally {
    await reader.close();
    lock?.close();
  }
  say(command, `${file} is made anew; the one before is ${kept}`);
}

async function intoAnother(
  command: ConfiguredCommand,
  from: StorePlace,
  { into = "", acceptMissing }: RebuildCommandOptions,
): Promise<void> {
  const place = storePlace({ effectsUrl: checkedUrl(into), dataDir: command.config.dataDir });
  const reader = await readerAt(from);
  try {
    await fill(command, reader, { from, place, acceptMissing });
  } finally {
    await reader.close();
  }
  say(command, `${shownPlace(place)} is made; PENSTOCK_EFFECTS_URL takes it`);
}

interface Filled {
  readonly from: StorePlace;
  readonly place: StorePlace;
  readonly acceptMissing: boolean;
}

async function fill(
  command: ConfiguredCommand,
  reader: EffectsReader,
  { from, place, acceptMissing }: Filled,
): Promise<void> {
  const installation = installationOf(command, from);
  await requireInstallation(reader, installation);
  const recording = await reader.recording();
  const into = await storeAt(place);
  try {
    await into.open();
    await takeForInstallation(into, { ...installation, shown: shownPlace(place) });
    const { subjectPrefix: prefix, effectsLargeBytesMax: largeBytesMax } = command.config;
    const { messages, missing } = await atNats(command, (connection) =>
      rebuild({
        connection,
        prefix,
        recording,
        into,
        acceptMissing,
        people: { largeBytesMax },
        onProgress: progress(command),
      }),
    );
    const gone = missing === 0 ? "" : `; ${missing} are in the streams no longer`;
    note(command, `${messages} messages applied${gone}`);
  } finally {
    await into.close();
  }
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

/** What an operator can do something about is told without a stack. */
async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof StoreError) && !(error instanceof RebuildError)) throw error;
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
    await connection.close();
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
