import { isDeepStrictEqual } from "node:util";
import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { rejectedConfigs, wantedConfigs } from "../../gateway/streams/desired.ts";
import {
  changeOwnLimits,
  type OwnLimit,
  type OwnLimits,
  readOwnLimits,
} from "../../gateway/streams/own-limits.ts";
import { dayMs } from "../../platform/base/day.ts";
import { ledStreamInfo, managerOf, nanosPerMs } from "../../platform/nats/api.ts";
import { rejectedLane, subjectOf } from "../../platform/nats/names.ts";
import { violationIn } from "../../platform/nats/sign-in.ts";
import { audited } from "../audit.ts";
import { confirm } from "../confirm.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { shownBytes } from "../doctor/finding.ts";
import { managerFor, withNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId } from "../registered-project.ts";
import { counted, table } from "../terminal.ts";
import {
  countRange,
  type MessageRange,
  type NamedStream,
  namedStreams,
  sameStreams,
} from "./named-streams.ts";
import { readersOf, requireRead, type StreamReader } from "./readers.ts";

const changeTimeoutMs = 60_000;

export async function showStreams(
  command: ConfiguredCommand,
  which: string | undefined,
  asJson: boolean,
): Promise<void> {
  const shown = await withNats(command, async (connection) => {
    const manager = await managerFor(connection);
    const streams = await namedStreams(command, connection, which);
    return await Promise.all(
      streams.map(async (one) => shownStream(one, await readersOf(manager, one.stream))),
    );
  });
  if (asJson) return say(command, JSON.stringify(shown, undefined, 2));
  for (const line of table([
    ["STREAM", "MESSAGES", "BYTES", "MAX BYTES", "MAX AGE", "OLDEST", "NEWEST", "LIMITS"],
    ...shown.map((one) => [
      one.stream,
      String(one.messages),
      shownBytes(one.bytes),
      sizeText(one.bytes_max),
      ageText(one.age_max_seconds),
      one.oldest ?? "-",
      one.newest ?? "-",
      one.set_by_command.length === 0 ? "settings" : `set: ${one.set_by_command.join(", ")}`,
    ]),
  ]))
    say(command, line);
  const readers = shown.flatMap(({ stream, readers }) =>
    readers.map(({ name, unread }) => [stream, name, String(unread)]),
  );
  say(command, "");
  if (readers.length === 0) return say(command, "no reader is connected");
  for (const line of table([["STREAM", "READER", "UNREAD MESSAGES"], ...readers]))
    say(command, line);
}

function shownStream({ stream, lane, partition, info, own }: NamedStream, readers: StreamReader[]) {
  const { state, config, cluster } = info;
  const hasMessages = state.messages > 0;
  return {
    stream,
    lane,
    partition,
    messages: state.messages,
    bytes: state.bytes,
    bytes_max: config.max_bytes > 0 ? config.max_bytes : null,
    age_max_seconds: config.max_age > 0 ? config.max_age / nanosPerMs / 1_000 : null,
    /** The limits that a gateway does not change, because `stream set` has set them. */
    set_by_command: Object.keys(own),
    first_sequence: state.first_seq,
    last_sequence: state.last_seq,
    oldest: hasMessages ? timeText(state.first_ts) : null,
    newest: hasMessages ? timeText(state.last_ts) : null,
    replicas: config.num_replicas,
    leader: cluster?.leader ?? null,
    readers: readers.map(({ name, unread }) => ({ name, unread })),
  };
}

function timeText(time: string): string {
  return `${time.slice(0, 19)}Z`;
}

function sizeText(bytes: number | null): string {
  return bytes === null ? "unlimited" : shownBytes(bytes);
}

function ageText(seconds: number | null): string {
  if (seconds === null) return "unlimited";
  const units = [
    ["d", 86_400],
    ["h", 3_600],
    ["m", 60],
  ] as const;
  const [unit, size] = units.find(([, size]) => seconds % size === 0) ?? ["s", 1];
  return `${seconds / size}${unit}`;
}

export interface SetOptions {
  readonly maxAge?: number;
  readonly maxBytes?: number;
  readonly fromSettings: boolean;
  readonly unread: boolean;
  readonly effects: boolean;
}

/** Minimum age in ms, so that readers do not lose events while they restart. */
const ageMsMin = 3_600_000;
/** Maximum age in days: JetStream stores the age in nanoseconds, as a signed integer of 64 bits. */
const ageDaysMax = 106_751;
/** Like the minimum of PENSTOCK_STREAM_BYTES_MAX. */
const bytesMin = 1_048_576;

/** Sets limits. Afterwards, gateways no longer change these limits. */
export async function setLimits(
  command: ConfiguredCommand,
  which: string,
  options: SetOptions,
): Promise<void> {
  const { maxAge, maxBytes, fromSettings } = options;
  if (fromSettings === (maxAge !== undefined || maxBytes !== undefined))
    throw new CommandError(
      "stream set: give --max-age, --max-bytes or both, or only --from-settings",
      usageExitCode,
    );
  if (maxAge !== undefined && maxAge < ageMsMin)
    throw new CommandError(
      "stream set: --max-age must be at least 1h, so that a reader that restarts loses no events",
      usageExitCode,
    );
  if (maxAge !== undefined && maxAge > ageDaysMax * dayMs)
    throw new CommandError(
      `stream set: --max-age must be at most ${ageDaysMax}d, the longest age that JetStream can store`,
      usageExitCode,
    );
  if (maxBytes !== undefined && maxBytes < bytesMin)
    throw new CommandError(
      `stream set: --max-bytes must be at least ${bytesMin}: a smaller stream would reject most events (503 store_full)`,
      usageExitCode,
    );
  await withNats(command, async (connection) => {
    const manager = await managerOf(connection, { timeoutMs: changeTimeoutMs });
    const streams = await namedStreams(command, connection, which);
    const changes = streams.map((one) => ({ ...one, next: nextLimits(command, one, options) }));
    for (const { stream, lane, info, next } of changes)
      if (next.max_bytes > 0 && next.max_bytes < info.state.bytes && lane !== rejectedLane)
        throw new CommandError(
          `stream set: ${stream} holds ${info.state.bytes} bytes, more than ${next.max_bytes}: it would reject all events (503 store_full). Nothing was changed. Shorten --max-age first, or purge`,
        );
    const ranges = changes.flatMap((one): [NamedStream, MessageRange][] => {
      const [age, ageBefore] = [one.next.max_age, one.info.config.max_age];
      const isShorter = age > 0 && (ageBefore === 0 || age < ageBefore);
      return isShorter ? [[one, { before: new Date(Date.now() - age / nanosPerMs) }]] : [];
    });
    const { unread, effects } = options;
    if (!unread) await requireRead(command, manager, { doing: "stream set", ranges, effects });
    for (const one of changes) {
      const { stream, info, own, next } = one;
      const before = limitsText(info.config, own);
      const after = limitsText(next, next.own);
      if (before === after && haveSameLimits(info.config, next)) {
        say(command, `${stream}: unchanged: ${after}`);
        continue;
      }
      await audited(command, { change: "stream set", stream, before, after }, () =>
        applyLimits(command, { connection, manager, one, options }),
      );
      say(command, `${stream}: ${after}; it had ${before}`);
    }
  });
}

interface Limits extends Pick<StreamConfig, OwnLimit> {
  readonly own: OwnLimits;
}

function nextLimits(
  { config: settings }: ConfiguredCommand,
  { stream, own: before, info: { config } }: NamedStream,
  options: SetOptions,
): Limits {
  const own = changedOwn(before, options);
  const base = options.fromSettings ? wantedOf(settings, stream) : config;
  return { max_age: base.max_age, max_bytes: base.max_bytes, ...own, own };
}

/** Returns the limits that the command sets after the change. */
function changedOwn(before: OwnLimits, { maxAge, maxBytes, fromSettings }: SetOptions): OwnLimits {
  if (fromSettings) return {};
  return {
    ...before,
    ...(maxAge === undefined ? {} : { max_age: maxAge * nanosPerMs }),
    ...(maxBytes === undefined ? {} : { max_bytes: maxBytes }),
  };
}

interface Applied {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly one: NamedStream;
  readonly options: SetOptions;
}

/**
 * Stores the limits and changes the stream. Repeats if another command has changed the limits
 * meanwhile, because the update may have undone them: JetStream only replaces whole configurations.
 */
async function applyLimits(
  command: ConfiguredCommand,
  { connection, manager, one: { stream, info }, options }: Applied,
): Promise<void> {
  const which = { prefix: command.config.subjectPrefix, stream };
  const change = async (to: (limits: OwnLimits) => OwnLimits) =>
    await changeOwnLimits(connection, manager, {
      ...which,
      replicas: info.config.num_replicas,
      change: to,
    });
  const settings = () => {
    const { max_age, max_bytes } = wantedOf(command.config, stream);
    return { max_age, max_bytes };
  };
  let before: OwnLimits = {};
  // Before the stream, because a gateway that starts meanwhile applies these limits.
  let own = await change((limits) => {
    before = limits;
    return changedOwn(limits, options);
  });
  const stored = own;
  let base: OwnLimits = options.fromSettings ? settings() : {};
  for (;;) {
    const limits = { ...base, ...own };
    await manager.streams.update(stream, limits).catch(async (error: Error) => {
      if (!(error instanceof JetStreamApiError) && violationIn(error) === undefined)
        return await requireApplied(connection, { stream, limits, error });
      await change((now) => withoutChange(now, { before, stored }));
      throw new CommandError(`stream set: ${stream} rejected the limits: ${error.message}`);
    });
    const now = await readOwnLimits(manager, which);
    if (isDeepStrictEqual(now, own)) return;
    // Another command has returned the stream to the settings.
    if (Object.keys(own).some((limit) => !(limit in now))) base = settings();
    own = now;
  }
}

interface StoredChange {
  readonly before: OwnLimits;
  readonly stored: OwnLimits;
}

/** Undoes a change of the stored limits, except for limits that have been changed again since. */
function withoutChange(now: OwnLimits, { before, stored }: StoredChange): OwnLimits {
  const undone = (["max_age", "max_bytes"] as const).map(
    (limit) => [limit, (now[limit] === stored[limit] ? before : now)[limit]] as const,
  );
  return Object.fromEntries(undone.filter(([, value]) => value !== undefined));
}

interface Unconfirmed {
  readonly stream: string;
  readonly limits: OwnLimits;
  readonly error: Error;
}

/** Throws a CommandError if the stream does not have the limits of an unconfirmed update. */
async function requireApplied(
  connection: NatsConnection,
  { stream, limits, error: { message } }: Unconfirmed,
): Promise<void> {
  const manager = await managerFor(connection);
  const info = await ledStreamInfo(manager, stream).catch(() => undefined);
  if (info !== undefined && haveSameLimits(info.config, { ...info.config, ...limits })) return;
  const has =
    info === undefined
      ? "its limits cannot be read"
      : `it now has ${limitsText(info.config)}, which may still change`;
  throw new CommandError(
    `stream set: NATS did not confirm the new limits of ${stream}: ${message}; ${has}. They are stored, and a gateway may apply them at its start. Run the command again`,
  );
}

function wantedOf(settings: ConfiguredCommand["config"], stream: string) {
  const all = [...wantedConfigs(settings), ...rejectedConfigs(settings)];
  const wanted = all.find(({ name }) => name === stream);
  if (wanted === undefined)
    throw new CommandError(
      `stream set: the settings have no stream ${stream}: PENSTOCK_PARTITIONS is ${settings.partitions}, and PENSTOCK_REJECTED_BYTES is ${settings.rejectedBytes}`,
    );
  return wanted;
}

function haveSameLimits(
  one: Pick<StreamConfig, OwnLimit>,
  other: Pick<StreamConfig, OwnLimit>,
): boolean {
  return one.max_age === other.max_age && one.max_bytes === other.max_bytes;
}

function limitsText(config: Pick<StreamConfig, OwnLimit>, own?: OwnLimits): string {
  const age = config.max_age > 0 ? config.max_age / nanosPerMs / 1_000 : null;
  const from = (limit: OwnLimit) =>
    own === undefined ? "" : ` (${limit in own ? "set" : "settings"})`;
  const bytes = sizeText(config.max_bytes > 0 ? config.max_bytes : null);
  return `age ${ageText(age)}${from("max_age")}, ${bytes}${from("max_bytes")}`;
}

export interface PurgeOptions {
  readonly project?: string;
  readonly to?: number;
  readonly dryRun: boolean;
  readonly unread: boolean;
  readonly effects: boolean;
  readonly yes: boolean;
}

/** Removes messages. Messages that are stored during the command are not removed. */
export async function purge(
  command: ConfiguredCommand,
  which: string,
  options: PurgeOptions,
): Promise<void> {
  const { project, dryRun, unread, effects, yes } = options;
  if (project !== undefined) mustBeProjectId(project);
  await withNats(command, async (connection) => {
    const manager = await managerOf(connection, { timeoutMs: changeTimeoutMs });
    if (project !== undefined)
      await mustBeKnown(connection, command.config, { command: "stream purge", project });
    const streams = await namedStreams(command, connection, which);
    if (options.to !== undefined && streams.length > 1)
      throw new CommandError(
        "stream purge: --to is a sequence of one stream. Name the stream instead of its lane",
        usageExitCode,
      );
    const ranges: [NamedStream, MessageRange][] = [];
    let total = 0;
    for (const one of streams) {
      const which = rangeOf(command, one, options);
      const count = await countRange(manager, one, which);
      total += count;
      // Before version 2.11, a server that must purge before sequence 1 purges the whole stream.
      if (count > 0 && Number(which.before) > 1) ranges.push([one, which]);
      say(
        command,
        `${one.stream}: ${counted(count, "message")}${project === undefined ? "" : ` of ${project}`} before sequence ${which.before}`,
      );
    }
    if (ranges.length === 0) return say(command, "nothing to remove");
    const check = async () => {
      const fresh = await sameStreams(manager, { doing: "stream purge", ranges });
      if (!unread)
        await requireRead(command, manager, { doing: "stream purge", ranges: fresh, effects });
    };
    if (dryRun) {
      await check().catch((error: unknown) => {
        if (!(error instanceof CommandError)) throw error;
        note(command, error.message);
      });
      return say(command, "nothing was changed (--dry-run)");
    }
    await check();
    const question = `Remove ${counted(total, "message")} from ${ranges.map(([{ stream }]) => stream).join(", ")}?`;
    if (!yes) {
      await confirm(command, { command: "stream purge", question, word: which });
      // A reader may have started while the operator read the question.
      await check();
    }
    for (const one of ranges) {
      const [{ stream }, { before, subject }] = one;
      const entry = { change: "stream purge", stream, before, project };
      const purged = await audited(command, entry, async () => {
        await sameStreams(manager, { doing: "stream purge", ranges: [one] });
        const filter = subject === undefined ? {} : { filter: subject };
        const answer = await manager.streams.purge(stream, { ...filter, seq: Number(before) });
        return answer.purged;
      });
      say(command, `${stream}: ${counted(purged, "message")} removed`);
    }
  });
}

function rangeOf(
  { config }: ConfiguredCommand,
  { lane, partition, info: { state } }: NamedStream,
  { project, to }: PurgeOptions,
): MessageRange {
  const before = Math.min(to ?? state.last_seq, state.last_seq) + 1;
  if (project === undefined) return { before };
  const { subjectPrefix: prefix } = config;
  return { before, subject: subjectOf(prefix, lane, { partition, projectId: project }) };
}
