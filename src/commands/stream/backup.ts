// `penstock stream backup` and `restore`, with JetStream's snapshot of a stream at one moment. A
// folder per stream has the files of a backup of the nats CLI: `stream.tar.s2` and, written last,
// `backup.json`.

import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import path from "node:path";
import type { StreamConfig, StreamState } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { bucketName } from "../../gateway/projects/registry/bucket.ts";
import { streamInfoOf } from "../../platform/nats/api.ts";
import { bucketStream } from "../../platform/nats/names.ts";
import { erasuresBucketOf } from "../../platform/nats/rewritten.ts";
import { audited } from "../audit.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { shownBytes } from "../doctor/finding.ts";
import { managerFor, withNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { namedStreams } from "./streams.ts";

const formatVersion = 1;
const manifestFile = "backup.json";
const dataFile = "stream.tar.s2";
const chunkBytes = 131_072;
const silenceMsMax = 30_000;

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

interface SnapshotAnswer {
  readonly error?: { readonly description: string };
  readonly config: StreamConfig;
  readonly state: StreamState;
}

/** Writes the streams, the project registry and the record of erasures into a new folder each. */
export async function backup(
  command: ConfiguredCommand,
  folder: string,
  which: string | undefined,
): Promise<void> {
  await withNats(command, async (connection) => {
    const names = (await namedStreams(command, connection, which)).map(({ stream }) => stream);
    if (which === undefined) names.push(...(await bucketsOf(command, connection, names[0]!)));
    for (const name of names) {
      const target = path.join(folder, name);
      if (existsSync(target))
        throw new CommandError(
          `stream backup: ${target} exists. Name another folder, or remove this one`,
        );
    }
    for (const name of names) {
      const { state, penstock } = await backUp(command, connection, {
        name,
        target: path.join(folder, name),
      });
      say(
        command,
        `${name}: ${counted(state.messages, "message")} up to ${state.last_seq}, ${shownBytes(penstock.data_bytes)}`,
      );
    }
    say(command, `backup complete: ${path.resolve(folder)}`);
  });
}

async function bucketsOf(
  { config }: ConfiguredCommand,
  connection: NatsConnection,
  anyStream: string,
): Promise<string[]> {
  const manager = await managerFor(connection);
  const names = [bucketName(config.subjectPrefix), erasuresBucketOf(anyStream)].map(bucketStream);
  const found = await Promise.all(names.map((name) => streamInfoOf(manager, name)));
  return names.filter((_, index) => found[index] !== undefined);
}

async function backUp(
  { context }: ConfiguredCommand,
  connection: NatsConnection,
  { name, target }: { name: string; target: string },
): Promise<Manifest> {
  await mkdir(target, { recursive: true, mode: 0o700 });
  const file = await open(path.join(target, dataFile), "wx", 0o600);
  const hash = createHash("sha256");
  const inbox = createInbox();
  const chunks = connection.subscribe(inbox);
  let bytes = 0;
  try {
    const answer = await ask<SnapshotAnswer>(connection, `STREAM.SNAPSHOT.${name}`, {
      ...{ deliver_subject: inbox, no_consumers: false, chunk_size: chunkBytes, jsck: true },
    });
    const arrived = chunks[Symbol.asyncIterator]();
    for (;;) {
      const chunk = await inTime(arrived.next(), `${name}: the server sent no more data`);
      context.stop.throwIfAborted();
      const message = chunk.value as Msg | undefined;
      if (message === undefined) throw new CommandError(`stream backup: ${name}: connection lost`);
      const { data } = message;
      if (data.length === 0) {
        const status = message.headers?.code ?? 0;
        if (status >= 400)
          throw new CommandError(
            `stream backup: ${name}: the server ended the snapshot: ${message.headers?.description}`,
          );
        break;
      }
      // The server sends more only after acknowledgements, so memory is bounded.
      await file.appendFile(data);
      hash.update(data);
      bytes += data.length;
      message.respond();
    }
    await file.sync();
    const { config, state } = answer;
    const manifest = {
      ...{ config, state },
      penstock: {
        ...{ version: formatVersion, created: new Date().toISOString() },
        ...{ data_bytes: bytes, data_sha256: hash.digest("hex") },
      },
    };
    const written = path.join(target, `${manifestFile}.part`);
    await writeFile(written, `${JSON.stringify(manifest, undefined, 2)}\n`, {
      ...{ mode: 0o600, flush: true },
    });
    renameSync(written, path.join(target, manifestFile));
    return manifest;
  } finally {
    chunks.unsubscribe();
    await file.close();
  }
}

/** Changes nothing if a stream exists, or if a file is damaged. */
export async function restore(
  command: ConfiguredCommand,
  folder: string,
  which: string | undefined,
): Promise<void> {
  const found = manifestsIn(folder, which);
  for (const { name, manifest } of found) await checkData(folder, name, manifest);
  await withNats(command, async (connection) => {
    const manager = await managerFor(connection);
    for (const { name } of found)
      if ((await streamInfoOf(manager, name)) !== undefined)
        throw new CommandError(
          `stream restore: the stream ${name} exists, and a restore never replaces one. Nothing was changed. Stop the gateways, which create missing streams, and remove it (nats stream rm ${name}), or restore into another NATS`,
        );
    for (const { name, manifest } of found) {
      const { messages, last_seq: last } = manifest.state;
      await audited(command, { change: "stream restore", stream: name, messages }, () =>
        restoreOne(command, connection, { data: path.join(folder, name, dataFile), manifest }),
      );
      const state = (await streamInfoOf(manager, name))?.state;
      if (state?.last_seq !== last)
        throw new CommandError(
          `stream restore: ${name} ends at ${state?.last_seq}, and its backup at ${last}`,
        );
      say(command, `${name}: ${counted(state.messages, "message")} up to ${last}`);
      // Messages older than the maximum age leave a restored stream immediately.
      if (state.messages < messages)
        note(command, `${name}: ${counted(messages - state.messages, "message")} had expired`);
    }
  });
}

interface FoundBackup {
  readonly name: string;
  readonly manifest: Manifest;
}

function manifestsIn(folder: string, which: string | undefined): FoundBackup[] {
  const wrong = (what: string) => new CommandError(`stream restore: ${what}`, usageExitCode);
  let names: string[];
  try {
    names = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && (which ?? entry.name) === entry.name)
      .map((entry) => entry.name);
  } catch (error) {
    throw wrong(`cannot read ${folder}: ${(error as NodeJS.ErrnoException).code}`);
  }
  const found = names.map((name) => {
    const file = path.join(folder, name, manifestFile);
    if (!existsSync(file))
      throw wrong(`${path.join(folder, name)} has no ${manifestFile}: the backup is incomplete`);
    let manifest: Partial<Manifest>;
    try {
      manifest = JSON.parse(readFileSync(file, "utf8")) as Partial<Manifest>;
    } catch {
      throw wrong(`${file} is not JSON`);
    }
    const { config, state, penstock } = manifest;
    if (penstock === undefined || config === undefined || state === undefined)
      throw wrong(`${file} is not a backup of penstock stream backup`);
    if (penstock.version !== formatVersion)
      throw wrong(
        `${file} has format version ${penstock.version}, and this release reads version ${formatVersion}: restore it with the release that wrote it`,
      );
    if (config.name !== name) throw wrong(`${file} is of the stream ${config.name}, not ${name}`);
    return { name, manifest: { config, state, penstock } };
  });
  if (found.length === 0)
    throw wrong(`${folder} contains no backup${which === undefined ? "" : ` of ${which}`}`);
  return found;
}

async function checkData(folder: string, name: string, { penstock }: Manifest): Promise<void> {
  const file = path.join(folder, name, dataFile);
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(file)) {
      hash.update(chunk as Buffer);
      bytes += (chunk as Buffer).length;
    }
  } catch (error) {
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
  readonly error?: { readonly description: string };
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
    const answer = (await send(chunk as Buffer)).string();
    if (/^-ERR|"error":/.test(answer)) throw failed(name, answer);
  }
  const ended = (await send(new Uint8Array())).json<{ error?: { description: string } }>();
  if (ended.error !== undefined) throw failed(name, ended.error.description);
}

function failed(name: string, reason: string): CommandError {
  return new CommandError(`stream restore: the server rejected the data of ${name}: ${reason}`);
}

async function ask<T extends { readonly error?: { readonly description: string } }>(
  connection: NatsConnection,
  what: string,
  request: object,
): Promise<T> {
  const options = { timeout: silenceMsMax };
  const message = await connection.request(`$JS.API.${what}`, JSON.stringify(request), options);
  const answer = message.json<T>();
  if (answer.error !== undefined)
    throw new CommandError(`${what.toLowerCase()}: ${answer.error.description}`);
  return answer;
}

async function inTime<T>(work: Promise<T>, late: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CommandError(`stream backup: ${late}`)), silenceMsMax);
  });
  return await Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}
