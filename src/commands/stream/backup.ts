// The commands `penstock stream backup` and `restore`. They use JetStream's snapshots, which
// contain a stream at one moment. The folder of a stream contains the same files as a backup of the
// nats CLI: `stream.tar.s2` and `backup.json`, which is written last. `streams.json` lists the streams
// of a backup. It is written after all of them, so a backup without it is incomplete.

import { createHash } from "node:crypto";
import { createReadStream, existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager, StreamConfig, StreamInfo, StreamState } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { bucketName } from "../../gateway/projects/registry/bucket.ts";
import { limitsBucket } from "../../gateway/streams/own-limits.ts";
import { sync, writeWhole } from "../../platform/base/files.ts";
import { compareVersions, parseVersion } from "../../platform/base/forms.ts";
import { objectIn } from "../../platform/base/json.ts";
import { inTime } from "../../platform/base/retry.ts";
import {
  ledStreamInfo,
  NoLeaderError,
  nanosPerMs,
  noRoomCodes,
  streamInfoOf,
} from "../../platform/nats/api.ts";
import {
  bucketStream,
  isRestoring,
  lanes,
  rejectedLane,
  restoringSubject,
} from "../../platform/nats/names.ts";
import { erasuresBucketOf } from "../../platform/nats/rewritten.ts";
import { audited } from "../audit.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { shownBytes } from "../doctor/finding.ts";
import { managerFor, withNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { countFrom, namedStreams } from "./named-streams.ts";

const formatVersion = 1;
const manifestFile = "backup.json";
const listFile = "streams.json";
const dataFile = "stream.tar.s2";
const chunkBytes = 131_072;
const silenceMsMax = 30_000;
const settleMs = 1_000;

interface Manifest {
  readonly config: StreamConfig;
  readonly state: StreamState;
  readonly penstock: {
    readonly version: number;
    readonly created: string;
    readonly data_bytes: number;
    readonly data_sha256: string;
  };
}

interface StreamList {
  /** Version of the nats-server that was backed up. */
  readonly server_version: string;
  readonly streams: readonly { readonly name: string; readonly messages: number }[];
}

interface Reported {
  readonly err_code?: number;
  readonly description: string;
}

/** An error that the nats-server has reported. */
class ServerError extends CommandError {
  readonly description: string;
  readonly code: number | undefined;

  constructor(what: string, { description, err_code: code }: Reported) {
    super(`${what}: ${description}`);
    this.description = description;
    this.code = code;
  }
}

interface SnapshotAnswer {
  readonly error?: Reported;
  readonly config: StreamConfig;
  readonly state: StreamState;
}

/**
 * Writes the streams, the projects, their rules, the limits of `stream set` and the record of
 * erasures into a new folder each. Everything is on the disk when it returns.
 */
export async function backup(
  command: ConfiguredCommand,
  folder: string,
  which: string | undefined,
): Promise<void> {
  await withNats(command, async (connection) => {
    await mustBeRestored(await managerFor(connection));
    const names = (await namedStreams(command, connection, which)).map(({ stream }) => stream);
    if (which === undefined) names.push(...(await bucketsOf(command, connection, names[0]!)));
    for (const name of names) {
      const target = path.join(folder, name);
      if (existsSync(target))
        throw new CommandError(
          `stream backup: ${target} exists. Name another folder, or remove this one`,
        );
    }
    const list = path.resolve(folder, listFile);
    if (existsSync(list))
      throw new CommandError(`stream backup: ${list} exists. Name another folder`);
    const streams: StreamList["streams"][number][] = [];
    for (const name of names) {
      const target = path.resolve(folder, name);
      const { state, penstock } = await backUpOne(command, connection, { name, target }).catch(
        async (error: Error) => {
          const reason = reasonOf(command, error);
          throw new CommandError(
            `stream backup: ${name}: ${reason}: the backup is incomplete. Remove ${path.resolve(folder)}, or name another folder, and run the command again`,
          );
        },
      );
      streams.push({ name, messages: state.messages });
      say(
        command,
        `${name}: ${counted(state.messages, "message")} up to ${state.last_seq}, ${shownBytes(penstock.data_bytes)}`,
      );
    }
    const all: StreamList = { server_version: connection.info?.version ?? "", streams };
    await writeWhole(list, `${JSON.stringify(all, undefined, 2)}\n`);
    say(command, `backup complete: ${path.resolve(folder)}`);
  });
}

/** Throws a CommandError if a stream contains only a part of its backup. */
async function mustBeRestored(manager: JetStreamManager): Promise<void> {
  const found: string[] = [];
  for await (const name of manager.streams.names(restoringSubject("*"))) found.push(name);
  if (found.length > 0)
    throw new CommandError(
      `stream backup: the restore of ${found.join(", ")} is not complete. Run \`penstock stream restore\` again first`,
    );
}

function reasonOf({ context }: ConfiguredCommand, error: Error): string {
  if (context.stop.aborted) return "stopped";
  const isSilent = error.name === "TimeoutError" || error.message === "timeout";
  return isSilent ? `JetStream did not answer within ${silenceMsMax / 1_000} s` : error.message;
}

async function bucketsOf(
  { config }: ConfiguredCommand,
  connection: NatsConnection,
  anyStream: string,
): Promise<string[]> {
  const manager = await managerFor(connection);
  const { subjectPrefix: prefix } = config;
  const buckets = [
    bucketName(prefix),
    bucketName(prefix, "rules"),
    limitsBucket(prefix),
    erasuresBucketOf(anyStream),
  ];
  const names = buckets.map(bucketStream);
  const found = await Promise.all(names.map((name) => streamInfoOf(manager, name)));
  return names.filter((_, index) => found[index] !== undefined);
}

interface Target {
  readonly name: string;
  readonly target: string;
}

/**
 * Backs up a stream with its consumers, or a bucket. If a nats-server is down, JetStream rejects a
 * snapshot with consumers that were only on this server: then backs up the stream without them.
 */
async function backUpOne(
  command: ConfiguredCommand,
  connection: NatsConnection,
  { name, target }: Target,
): Promise<Manifest> {
  const attempt = async (hasConsumers: boolean) => {
    const created = await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    await mkdir(target, { mode: 0o700 });
    try {
      const manifest = await backUp(command, connection, { name, target, hasConsumers });
      await syncNames(target, path.dirname(created ?? target));
      return manifest;
    } catch (error) {
      await rm(target, { recursive: true, force: true });
      throw error;
    }
  };
  // The consumers of a bucket are watches of running gateways.
  if (name.startsWith(bucketStream(""))) return await attempt(false);
  try {
    return await attempt(true);
  } catch (error) {
    if (!(error instanceof ServerError) || !error.description.includes("consumer")) throw error;
    note(
      command,
      `${name}: backed up without its consumers, so durable readers start again after a restore: ${(error as Error).message}`,
    );
    return await attempt(false);
  }
}

async function backUp(
  { context }: ConfiguredCommand,
  connection: NatsConnection,
  { name, target, hasConsumers }: Target & { readonly hasConsumers: boolean },
): Promise<Manifest> {
  const file = await open(path.join(target, dataFile), "wx", 0o600);
  const hash = createHash("sha256");
  const inbox = createInbox();
  const chunks = connection.subscribe(inbox);
  let bytes = 0;
  try {
    const answer = await ask<SnapshotAnswer>(connection, `STREAM.SNAPSHOT.${name}`, {
      deliver_subject: inbox,
      no_consumers: !hasConsumers,
      chunk_size: chunkBytes,
      jsck: true,
    });
    const arrived = chunks[Symbol.asyncIterator]();
    for (;;) {
      const chunk = await inTime(
        arrived.next(),
        silenceMsMax,
        new CommandError("the server sent no more data"),
      );
      context.stop.throwIfAborted();
      const message = chunk.value as Msg | undefined;
      if (message === undefined) throw new CommandError("connection lost");
      const { data } = message;
      if (data.length === 0) {
        const status = message.headers?.code ?? 0;
        if (status >= 400)
          throw new ServerError("the server ended the snapshot", {
            description: message.headers?.description ?? "",
          });
        break;
      }
      // The server waits for acknowledgements, so the memory for chunks is bounded.
      await file.appendFile(data);
      hash.update(data);
      bytes += data.length;
      message.respond();
    }
    await file.sync();
    const { config, state } = answer;
    const manifest = {
      config,
      state,
      penstock: {
        version: formatVersion,
        created: new Date().toISOString(),
        data_bytes: bytes,
        data_sha256: hash.digest("hex"),
      },
    };
    const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
    await writeWhole(path.join(target, manifestFile), text);
    return manifest;
  } finally {
    chunks.unsubscribe();
    await file.close();
  }
}

/** Flushes the names in the folder and in its parents, up to `last`. */
async function syncNames(folder: string, last: string): Promise<void> {
  await sync(folder);
  if (folder !== last) await syncNames(path.dirname(folder), last);
}

interface CheckedBackup {
  readonly list: StreamList;
  readonly found: readonly FoundBackup[];
}

/**
 * Reads the backup in a folder. Throws a CommandError if a file is missing or damaged, or if `stop`
 * aborts.
 */
export async function checkedBackup(
  folder: string,
  which: string | undefined,
  stop: AbortSignal,
): Promise<CheckedBackup> {
  const list = listIn(folder);
  const found = manifestsIn(folder, list, which);
  for (const { name, manifest } of found) await checkData(manifest, { folder, name, stop });
  return { list, found };
}

/**
 * Creates the streams of a checked backup. A stream gets its subjects when it is complete, so no
 * gateway can write to it before. Leaves a stream that already has the messages of the backup, and
 * removes one that a restore has not completed: so a restore that was interrupted can be repeated.
 * Changes nothing if another stream of the name exists. `replaceEmpty` removes streams that never
 * had a message.
 */
export async function restore(
  command: ConfiguredCommand,
  folder: string,
  { list, found, replaceEmpty }: CheckedBackup & { replaceEmpty: boolean },
): Promise<void> {
  await withNats(command, async (connection) => {
    const manager = await managerFor(connection);
    const missing: FoundBackup[] = [];
    const empty: FoundBackup[] = [];
    const incomplete: (FoundBackup & { readonly lastSequence: number })[] = [];
    for (const one of found) {
      const info = await ledStreamInfo(manager, one.name).catch((error: Error) => {
        if (!(error instanceof NoLeaderError)) throw error;
        throw new CommandError(
          `stream restore: ${error.message}: a nats-server is down, or was lost during a restore. Nothing was changed. Start it, and run the command again`,
        );
      });
      if (info === undefined) {
        missing.push(one);
        continue;
      }
      if (isRestoring(info.config)) {
        incomplete.push({ ...one, lastSequence: info.state.last_seq });
        continue;
      }
      const { upToEnd, since } = await partsOf(manager, info, one.manifest);
      if (isRestored(upToEnd, one.manifest)) {
        const more = since > 0 ? `; ${counted(since, "message")} stored since` : "";
        say(command, `${one.name}: unchanged: it already has the messages of the backup${more}`);
      } else if (info.state.last_seq === 0) empty.push(one);
      else
        throw new CommandError(
          `stream restore: the stream ${one.name} exists and ${differenceOf(upToEnd.state, one.manifest.state)}: a restore never replaces messages. Nothing was changed. Restore into an empty data folder (--data-dir) or another NATS, or restore only other streams (stream restore <folder> <stream>)`,
        );
    }
    await mustBeIdle(manager, incomplete);
    if (empty.length > 0 && !replaceEmpty)
      throw new CommandError(
        `stream restore: these streams exist and are empty: ${empty.map(({ name }) => name).join(", ")}. Nothing was changed. A gateway has created them, or a restore was interrupted: stop the gateways, and run the command again with --replace-empty`,
      );
    for (const { name } of empty)
      await audited(command, { change: "stream remove", stream: name, messages: 0 }, () =>
        deleteEmpty(manager, name),
      );
    for (const { name, lastSequence } of incomplete) {
      await audited(command, { change: "stream remove", stream: name, lastSequence }, () =>
        manager.streams.delete(name),
      );
      note(command, `${name}: removed the part that an interrupted restore has left`);
    }
    missing.push(...empty, ...incomplete);
    for (const [index, one] of missing.entries())
      await restoreChecked(command, connection, { folder, ...one }).catch((error: Error) => {
        const reason = reasonOf(command, error);
        const left = missing.slice(index).map(({ name }) => name);
        throw new CommandError(
          `stream restore: ${one.name}: ${reason}. Not restored: ${left.join(", ")}. ${newerServer(list, connection)}${noRoom(error, one.manifest)}Run the command again in 10 s, with every nats-server running: it restores only these`,
        );
      });
  });
}

/**
 * Deletes a stream that never had a message. First takes its subjects away, so that a gateway that
 * still runs cannot store an event before the deletion. Rejects if the stream has a message by then.
 */
async function deleteEmpty(manager: JetStreamManager, name: string): Promise<void> {
  const { subjects = [] } = (await manager.streams.info(name)).config;
  try {
    // A stream without subjects is a mirror or has sources. No gateway writes to it.
    if (subjects.length > 0)
      await manager.streams.update(name, { subjects: [`penstock_restore.${name}`] });
    // Messages that the server received before are stored meanwhile.
    await delay(settleMs);
    const last = (await ledStreamInfo(manager, name))?.state.last_seq;
    if (last !== 0)
      throw new CommandError(
        `stream restore: the stream ${name} is no longer empty: a gateway runs and has stored a message. The stream was not removed, and nothing was restored. Restore into an empty data folder (--data-dir) or another NATS`,
      );
    await manager.streams.delete(name);
  } catch (error) {
    await manager.streams.update(name, { subjects }).catch((failure: Error) => {
      throw new CommandError(
        `${(error as Error).message}. The subjects of the stream could not be put back: ${failure.message}. Put them back with: nats stream edit ${name} --subjects "${subjects.join(",")}"`,
      );
    });
    throw error;
  }
}

/** Throws a CommandError if another command still fills one of the streams. */
async function mustBeIdle(
  manager: JetStreamManager,
  incomplete: readonly { readonly name: string; readonly lastSequence: number }[],
): Promise<void> {
  if (incomplete.length === 0) return;
  await delay(settleMs);
  for (const { name, lastSequence } of incomplete) {
    const last = (await streamInfoOf(manager, name))?.state.last_seq;
    if (last !== lastSequence)
      throw new CommandError(
        `stream restore: another command restores ${name} now. Nothing was changed. Wait until it ends`,
      );
  }
}

interface Parts {
  /** The stream as if it ended where the backup ends. */
  readonly upToEnd: Pick<StreamInfo, "state" | "config">;
  /** Number of messages after the end of the backup. */
  readonly since: number;
}

async function partsOf(
  manager: JetStreamManager,
  { state, config }: StreamInfo,
  { state: { last_seq: end } }: Manifest,
): Promise<Parts> {
  if (state.last_seq <= end) return { upToEnd: { state, config }, since: 0 };
  const since = await countFrom(manager, config.name, { from: end + 1 });
  const messages = state.messages - since;
  const last = messages === 0 ? null : await manager.streams.getMessage(config.name, { seq: end });
  const upToEnd = { ...state, messages, last_seq: end, last_ts: last?.timestamp ?? "" };
  return { upToEnd: { state: upToEnd, config }, since };
}

/** Returns whether a stream has the messages of its backup, except those that have expired. */
function isRestored({ state, config }: Parts["upToEnd"], { state: backedUp }: Manifest): boolean {
  if (state.last_seq !== backedUp.last_seq) return false;
  const missing = backedUp.messages - state.messages;
  if (missing !== 0) return missing > 0 && canHaveExpired(missing, { state, config, backedUp });
  // A stream without messages has no reliable time and first sequence.
  if (state.messages === 0) return true;
  return state.first_seq === backedUp.first_seq && state.last_ts === backedUp.last_ts;
}

interface Shortened {
  readonly state: StreamState;
  readonly config: StreamConfig;
  readonly backedUp: StreamState;
}

/** Only the oldest messages can have expired, and all if none is left. */
function canHaveExpired(missing: number, { state, config, backedUp }: Shortened): boolean {
  if (config.max_age === 0) return false;
  const expiredMs = Date.now() - config.max_age / nanosPerMs;
  if (state.messages === 0) return Date.parse(backedUp.last_ts) <= expiredMs;
  const isOldest = missing <= state.first_seq - backedUp.first_seq;
  const isSameEnd = state.last_ts === backedUp.last_ts;
  return isOldest && isSameEnd && Date.parse(backedUp.first_ts) <= expiredMs;
}

function differenceOf(state: StreamState, backedUp: StreamState): string {
  if (state.last_seq !== backedUp.last_seq)
    return `ends at ${state.last_seq}, its backup ends at ${backedUp.last_seq}`;
  const content = ({ messages, first_seq: first, last_ts: last }: StreamState) =>
    `${counted(messages, "message")} from ${first}${messages > 0 && last !== "" ? `, the last of ${last}` : ""}`;
  return `has other content than its backup (${content(state)}, the backup ${content(backedUp)}; both end at ${state.last_seq})`;
}

async function restoreChecked(
  command: ConfiguredCommand,
  connection: NatsConnection,
  { folder, name, manifest }: FoundBackup & { folder: string },
): Promise<void> {
  const { messages, last_seq: last } = manifest.state;
  const { subjects = [] } = manifest.config;
  // A stream without subjects is a mirror or has sources. No gateway writes to it.
  const restoring = subjects.length > 0 ? { subjects: [restoringSubject(name)] } : {};
  const config = { ...manifest.config, ...restoring };
  const data = path.join(folder, name, dataFile);
  const state = await audited(
    command,
    { change: "stream restore", stream: name, messages },
    async () => {
      await restoreOne(command, connection, { data, manifest: { ...manifest, config } });
      const manager = await managerFor(connection);
      const restored = (await streamInfoOf(manager, name))?.state;
      if (restored?.last_seq !== last)
        throw new CommandError(`it ends at ${restored?.last_seq}, and its backup at ${last}`);
      if (subjects.length > 0) await manager.streams.update(name, { subjects });
      return restored;
    },
  );
  say(command, `${name}: ${counted(state.messages, "message")} up to ${last}`);
  // Messages older than the maximum age leave a restored stream immediately.
  if (state.messages < messages)
    note(command, `${name}: ${counted(messages - state.messages, "message")} had expired`);
}

/** Returns a sentence if the backup is of a newer nats-server than this one, or else "". */
function newerServer({ server_version: backedUp }: StreamList, { info }: NatsConnection): string {
  const version = info?.version ?? "";
  const [theirs, ours] = [parseVersion(backedUp), parseVersion(version)];
  if (theirs === undefined || ours === undefined || compareVersions(theirs, ours) <= 0) return "";
  return `The backup is of nats-server ${backedUp}, and this server is ${version}, which may reject it: use ${backedUp} or newer. `;
}

/** Returns a sentence if the server has no room for the stream, or else "". */
function noRoom(error: Error, { config }: Manifest): string {
  const isFull =
    error instanceof ServerError &&
    (noRoomCodes.includes(error.code ?? 0) || /no space|storage failure/.test(error.description));
  if (!isFull) return "";
  return `The server has no room for the stream, which reserves ${shownBytes(Math.max(0, config.max_bytes))}: free disk space. With an embedded nats-server, set PENSTOCK_STREAM_BYTES_MAX as in the gateway that was backed up; with your own, raise max_file_store and the limits of the account. `;
}

interface FoundBackup {
  readonly name: string;
  readonly manifest: Manifest;
}

function unusable(what: string): CommandError {
  return new CommandError(`stream restore: ${what}`, usageExitCode);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function listIn(folder: string): StreamList {
  const file = path.join(folder, listFile);
  let text: string;
  try {
    readdirSync(folder);
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === "open" && code === "ENOENT")
      throw unusable(
        `${folder} has no ${listFile}, which a backup gets when it is complete. Nothing was changed. Use a complete backup`,
      );
    throw unusable(`cannot read ${folder}: ${code}`);
  }
  const { server_version: version, streams } = objectIn(text) ?? {};
  const isStream = (one: unknown) => {
    const { name, messages } = recordOf(one);
    return typeof name === "string" && isNumber(messages);
  };
  if (typeof version !== "string" || !Array.isArray(streams) || !streams.every(isStream))
    throw unusable(
      `${file} is not a list of penstock stream backup. Nothing was changed. Use another copy of the backup`,
    );
  return { server_version: version, streams };
}

function manifestsIn(
  folder: string,
  { streams }: StreamList,
  which: string | undefined,
): FoundBackup[] {
  const wanted = which?.toUpperCase();
  const isWanted = ({ name }: { readonly name: string }) =>
    wanted === undefined ||
    name.toUpperCase() === wanted ||
    ([...lanes, rejectedLane].some((lane) => lane === which) &&
      name.replace(/_\d+$/, "").endsWith(`_${wanted}`));
  // The names of buckets sort first, so the registry is restored before the streams.
  const ordered = streams.filter(isWanted).sort((left, right) => (left.name < right.name ? -1 : 1));
  const found = ordered.map(({ name, messages }) => {
    const manifest = manifestOf(folder, name);
    if (manifest.state.messages !== messages)
      throw unusable(
        `${path.join(folder, name)} has ${counted(manifest.state.messages, "message")}, but ${listFile} lists ${messages}: it is of another backup. Nothing was changed. Use another copy of the backup`,
      );
    return { name, manifest };
  });
  if (found.length === 0)
    throw unusable(
      which === undefined
        ? `${folder} contains no backup`
        : `${folder} contains no backup of ${which}: it contains ${streams.map(({ name }) => name).join(", ") || "no streams"}`,
    );
  return found;
}

/** Returns the manifest of a stream. Throws if one of its values is missing or null. */
function manifestOf(folder: string, name: string): Manifest {
  const target = path.join(folder, name);
  if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw unusable(
      `${target} is missing, or is not a folder, but ${listFile} lists it: the backup is incomplete. Nothing was changed. Use another copy of the backup`,
    );
  const file = path.join(target, manifestFile);
  if (!existsSync(file))
    throw unusable(`${target} has no ${manifestFile}: the backup is incomplete`);
  const manifest = objectIn(readFileSync(file, "utf8")) ?? {};
  const config = recordOf(manifest["config"]);
  const state = recordOf(manifest["state"]);
  const penstock = recordOf(manifest["penstock"]);
  if (isNumber(penstock["version"]) && penstock["version"] !== formatVersion)
    throw unusable(
      `${file} has format version ${penstock["version"]}, and this release reads version ${formatVersion}: restore it with the release that wrote it`,
    );
  const numbers = [
    ...["messages", "first_seq", "last_seq"].map((key) => state[key]),
    ...["version", "data_bytes"].map((key) => penstock[key]),
  ];
  const values = [config, state, penstock].flatMap((part) => Object.values(part));
  if (typeof config["name"] !== "string" || !numbers.every(isNumber) || values.includes(null))
    throw unusable(
      `${file} is not a manifest of penstock stream backup: a value is missing or null. Nothing was changed. Use another copy of the backup`,
    );
  if (config["name"] !== name)
    throw unusable(`${file} is of the stream ${config["name"]}, not ${name}`);
  return manifest as unknown as Manifest;
}

async function checkData(
  { penstock }: Manifest,
  {
    folder,
    name,
    stop,
  }: { readonly folder: string; readonly name: string; readonly stop: AbortSignal },
): Promise<void> {
  const file = path.join(folder, name, dataFile);
  const hash = createHash("sha256");
  let bytes = 0;
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw unusable(
      `${file} is not a regular file. Nothing was changed. Use another copy of the backup`,
    );
  try {
    for await (const chunk of createReadStream(file, { signal: stop })) {
      hash.update(chunk as Buffer);
      bytes += (chunk as Buffer).length;
    }
  } catch (error) {
    if (stop.aborted) throw new CommandError("stream restore: stopped. Nothing was changed");
    throw new CommandError(
      `stream restore: cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`,
    );
  }
  if (bytes !== penstock.data_bytes || hash.digest("hex") !== penstock.data_sha256)
    throw new CommandError(
      `stream restore: ${file} is damaged: its size or checksum differs from ${manifestFile}. Nothing was changed. Use another copy of the backup`,
    );
}

interface RestoreAnswer {
  readonly error?: Reported;
  readonly deliver_subject: string;
}

async function restoreOne(
  { context }: ConfiguredCommand,
  connection: NatsConnection,
  { data, manifest: { config, state } }: { data: string; manifest: Manifest },
): Promise<void> {
  const { name } = config;
  const begun = await ask<RestoreAnswer>(connection, `STREAM.RESTORE.${name}`, { config, state });
  const send = async (chunk: Uint8Array): Promise<Msg> => {
    context.stop.throwIfAborted();
    return await connection.request(begun.deliver_subject, chunk, { timeout: silenceMsMax });
  };
  for await (const chunk of createReadStream(data, { highWaterMark: chunkBytes })) {
    const answer = await send(chunk as Buffer);
    const text = answer.string();
    if (text.startsWith("-ERR")) throw rejected({ description: text });
    if (text.startsWith("{")) throwIfRejected(answer);
  }
  throwIfRejected(await send(new Uint8Array()));
}

function throwIfRejected(answer: Msg): void {
  const { error } = answer.json<{ error?: Reported }>();
  if (error !== undefined) throw rejected(error);
}

function rejected(error: Reported): ServerError {
  return new ServerError("the server rejected the data", error);
}

async function ask<T extends { readonly error?: Reported }>(
  connection: NatsConnection,
  what: string,
  request: object,
): Promise<T> {
  const options = { timeout: silenceMsMax };
  const message = await connection.request(`$JS.API.${what}`, JSON.stringify(request), options);
  const answer = message.json<T>();
  if (answer.error !== undefined) throw new ServerError(`JetStream rejected ${what}`, answer.error);
  return answer;
}
