// The command `penstock erase` removes the events of a person from the streams, and then the person
// from the effects database. If the events are applied again later, they no longer contain the
// person.

import { readdirSync } from "node:fs";
import path from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { StoreError } from "../../platform/base/store-error.ts";
import { subjectOf } from "../../platform/nats/names.ts";
import { erasuresBucketOf } from "../../platform/nats/rewritten.ts";
import type { PeopleErasure } from "../../readers/effects/store/erase-rows.ts";
import {
  OtherInstallationError,
  requireInstallation,
} from "../../readers/effects/store/installation.ts";
import {
  erasureAt,
  readerAt,
  type StorePlace,
  shownPlace,
  storePlace,
} from "../../readers/effects/store/open.ts";
import {
  findStreams,
  type StreamName,
  type StreamState,
  storedStream,
} from "../../readers/stream/stored-stream.ts";
import { storedIdText } from "../../records/distinct-id.ts";
import { audited } from "../audit.ts";
import { confirm } from "../confirm.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { managerFor, withNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId } from "../registered-project.ts";
import { eraseRejected } from "../rejected/rejected-eraser.ts";
import { counted } from "../terminal.ts";
import { ErasureLog, erasureInterrupted, LostLockError } from "./erasure-log.ts";
import { FrameCutter } from "./frame-cutter.ts";
import {
  addErased,
  addIds,
  type Receipt,
  startedReceipt,
  userOf,
  writeReceipt,
} from "./receipt.ts";
import { checkStream, copiesOf } from "./stream-checks.ts";
import { type EraseStep, type StreamCounts, StreamEraser } from "./stream-eraser.ts";
import { findUnapplied, type Unapplied, type UnappliedStream } from "./unapplied.ts";

export interface EraseOptions {
  readonly project: string;
  readonly distinctId: readonly string[];
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly effects: boolean;
  /** Erases even if the effects database has not applied all events of the project. */
  readonly allowBehind: boolean;
  readonly receipt?: string | undefined;
  readonly version: string;
  /** Called after each step. Tests use it to end the process. */
  readonly stepped?: (step: EraseStep | "streams" | "people") => void | Promise<void>;
}

const progressMs = 5_000;
const namedMax = 20;
const triesMax = 3;
const againMsMax = 60_000;
const lockAgainMs = 1_000;
const catchUpMsMax = 10_000;
const catchUpPollMs = 250;

export async function erase(command: ConfiguredCommand, options: EraseOptions): Promise<void> {
  const { config } = command;
  const { project } = options;
  const given = idsOf(options);
  if (config.hubDomain !== undefined)
    throw new CommandError(
      "cannot erase at a leaf node, because the hub has copies of its events: run the command at the hub. The events on the leaf expire by age",
    );
  await withNats(command, async (connection) => {
    await mustBeKnown(connection, config, { command: "erase", project });
    const people = options.effects ? await withoutStack(() => peopleOf(command)) : undefined;
    await new Erasing({ command, options, connection, people, given }).run();
  });
}

function idsOf({ project, distinctId }: EraseOptions): string[] {
  const wrong = (what: string) => new CommandError(`erase: ${what}`, usageExitCode);
  mustBeProjectId(project);
  if (distinctId.length === 0) throw wrong("name the person: --distinct-id <id>");
  if (distinctId.some((id) => id.trim() === "")) throw wrong("a distinct id must not be blank");
  return [...new Set(distinctId.map(storedIdText))];
}

async function peopleOf({ config }: ConfiguredCommand): Promise<PeopleErasure> {
  const place = storePlace(config);
  const reader = await readerAt(place);
  try {
    const { subjectPrefix: prefix } = config;
    await requireInstallation(reader, { prefix, shown: shownPlace(place) });
  } finally {
    await reader.close();
  }
  return erasureAt(place);
}

function listed(ids: readonly string[]): string {
  const more = ids.length > namedMax ? ` and ${ids.length - namedMax} more` : "";
  return `${ids.slice(0, namedMax).join(", ")}${more}`;
}

function unappliedText(streams: readonly UnappliedStream[]): string {
  const messages = streams.reduce((sum, { appliedTo, end }) => sum + end - appliedTo, 0);
  const each = streams.map(({ stream, appliedTo, end }) => `${stream}: ${appliedTo} of ${end}`);
  return `the effects lag behind the streams by ${counted(messages, "message")} (${each.join(", ")})`;
}

async function withoutStack<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error instanceof OtherInstallationError) throw new CommandError(`erase: ${error.message}`);
    throw new CommandError(`${error.message}. If there is no such database, use --no-effects`);
  }
}

interface ErasingOptions {
  readonly command: ConfiguredCommand;
  readonly options: EraseOptions;
  readonly connection: NatsConnection;
  readonly people: PeopleErasure | undefined;
  readonly given: readonly string[];
}

class Erasing {
  readonly #of: ErasingOptions;
  #ids: readonly string[];
  #isKnown = false;
  /** The state of the streams when the ids were looked up. Later messages may link more ids. */
  #ends: ReadonlyMap<string, StreamState> = new Map();
  #unapplied: readonly UnappliedStream[] = [];
  #receipt: Receipt | undefined;
  #file = "";

  constructor(options: ErasingOptions) {
    this.#of = options;
    this.#ids = options.given;
  }

  #say(line: string): void {
    say(this.#of.command, line);
  }

  #note(line: string): void {
    note(this.#of.command, line);
  }

  async run(): Promise<void> {
    const { connection, command, options } = this.#of;
    const { subjectPrefix: prefix } = command.config;
    const manager = await managerFor(connection);
    const names = await findStreams(manager, prefix);
    if (names.length === 0) throw new CommandError("erase: there are no streams yet");
    await this.#findIds(names);
    this.#reportIds();
    if (options.dryRun) {
      const all = await this.#eraseStreams(names, undefined);
      all.push(...(await this.#eraseRejected(true)));
      this.#report(all, "would be erased");
      this.#reportNoMatch(all);
      return;
    }
    const { project } = options;
    for (const { stream, lane, partition } of names)
      await checkStream(
        connection,
        stream,
        subjectOf(prefix, lane, { partition, projectId: project }),
      );
    await this.#confirm(names);
    const { replicas } = command.config;
    const bucket = erasuresBucketOf(names[0]!.stream);
    const { pid } = command.context.host;
    for (let tried = 1; ; tried++) {
      const log = await ErasureLog.open(connection, { bucket, replicas, pid });
      await this.#lock(log, tried > 1);
      try {
        const entry = { change: "erase", project: options.project, erasure: log.id };
        await audited(command, entry, () => this.#erase(names, log));
        return;
      } catch (error) {
        if (!(error instanceof LostLockError) || tried === triesMax) throw error;
        this.#note(
          "restarting the erasure: its lock was lost, because another erasure took it or this process was suspended",
        );
      } finally {
        await log.unlock();
      }
    }
  }

  /**
   * Finds the ids of the person. The effects must have applied all links up to `#ends`, because the
   * erasure removes these links from the streams.
   */
  async #findIds(names: readonly StreamName[]): Promise<void> {
    const { options, people } = this.#of;
    this.#ends = await this.#endsOf(names);
    if (people === undefined) return;
    const isAccepted = this.#unapplied.length > 0;
    const { streams, hasWriter } = await this.#caughtUp(isAccepted ? 0 : catchUpMsMax);
    this.#unapplied = streams;
    if (streams.length > 0 && !isAccepted) this.#acceptBehind(streams, hasWriter);
    const found = await withoutStack(() => people.idsOf(options.project, this.#ids));
    if (found.length > 0) this.#isKnown = true;
    this.#ids = [...new Set([...this.#ids, ...found])];
  }

  async #endsOf(names: readonly StreamName[]): Promise<Map<string, StreamState>> {
    const manager = await managerFor(this.#of.connection);
    const ends = new Map<string, StreamState>();
    for (const { stream } of names) {
      const state = await storedStream(manager, stream).state();
      if (state !== undefined) ends.set(stream, state);
    }
    return ends;
  }

  async #caughtUp(waitMsMax: number): Promise<Unapplied> {
    const { command, connection, options } = this.#of;
    const { config, context } = command;
    const which = {
      place: storePlace(config),
      prefix: config.subjectPrefix,
      project: options.project,
      ends: this.#ends,
    };
    const untilMonotonicMs = performance.now() + waitMsMax;
    for (let hasSaid = false; ; hasSaid = true) {
      const found = await withoutStack(() => findUnapplied(connection, which));
      if (context.stop.aborted) throw erasureInterrupted();
      const isOver = performance.now() >= untilMonotonicMs;
      if (found.streams.length === 0 || !found.hasWriter || isOver) return found;
      if (!hasSaid)
        this.#note(`${unappliedText(found.streams)}: waiting up to ${waitMsMax / 1_000} s`);
      await pauseUntilAborted(catchUpPollMs, context.stop);
    }
  }

  #acceptBehind(streams: readonly UnappliedStream[], hasWriter: boolean): void {
    const { options } = this.#of;
    const behind = unappliedText(streams);
    const unknown = "Other ids of the person in these messages are not known yet";
    if (options.allowBehind) {
      this.#note(`${behind}. ${unknown}, and their events will remain (--allow-behind)`);
      return;
    }
    const fix = hasWriter
      ? "Wait until `penstock effects status` shows a lag of 0, and try again"
      : "No effects process runs on this database: start `penstock effects` and try again";
    const orElse = "To erase only the currently known ids, use --allow-behind";
    if (options.dryRun) {
      this.#note(`${behind}. ${unknown}, so an erasure would be rejected. ${fix}`);
      return;
    }
    const done =
      this.#receipt === undefined
        ? "Nothing was removed"
        : "Events that were already erased stay erased";
    throw new CommandError(`erase: ${behind}. ${unknown}. ${done}. ${fix}. ${orElse}`);
  }

  #reportIds(): void {
    const { options, given, people } = this.#of;
    const ids = this.#ids;
    this.#say(`${options.project}: ${counted(ids.length, "id")}: ${listed(ids)}`);
    if (people === undefined)
      this.#note("without the effects database, other ids of the person are not known");
    else if (ids.length > given.length)
      this.#say(`${ids.length - given.length} of them are linked to the given ids`);
  }

  async #lock(log: ErasureLog, isAgain: boolean): Promise<void> {
    const { command } = this.#of;
    const untilMonotonicMs = performance.now() + (isAgain ? againMsMax : 0);
    for (;;) {
      try {
        await log.lock((line) => this.#note(line), command.context.stop);
        return;
      } catch (error) {
        const { stop } = command.context;
        const isOver = stop.aborted || performance.now() > untilMonotonicMs;
        if (isOver || !(error instanceof CommandError)) throw error;
        await pauseUntilAborted(lockAgainMs, stop);
      }
    }
  }

  async #erase(names: readonly StreamName[], log: ErasureLog): Promise<void> {
    const { connection, command, options, given } = this.#of;
    const { project, version, stepped } = options;
    const previousIds = this.#ids;
    await this.#findIds(names);
    const ids = this.#ids;
    if (ids.length > previousIds.length)
      this.#say(
        `further ids of the person: ${listed(ids.filter((id) => !previousIds.includes(id)))}`,
      );
    const alsoTheirs = ids.filter((id) => !given.includes(id));
    const last = this.#receipt;
    const receipt = startedReceipt({
      erasure: log.id,
      by: userOf(command.context.host),
      version,
      project,
      given,
      alsoTheirs,
      last,
      unapplied: this.#unapplied,
    });
    this.#receipt = receipt;
    const isFirst = this.#file === "";
    if (isFirst) this.#file = options.receipt ?? `penstock-erasure-${log.id}.json`;
    writeReceipt(this.#file, receipt, isFirst);
    if (isFirst) this.#note(`writing the receipt to ${path.resolve(this.#file)}`);
    await log.keepReceipt(receipt);
    const all: StreamCounts[] = [];
    for (let isDone = false; !isDone; ) {
      all.push(...(await this.#eraseStreams(names, log)));
      await stepped?.("streams");
      isDone = !(await this.#erasePeople(receipt));
      await stepped?.("people");
      if (!isDone) this.#ends = await this.#endsOf(names);
    }
    const rejected = await this.#eraseRejected(false);
    all.push(...rejected);
    receipt.streams.push(...rejected);
    const copies = await copiesOf(connection, [...names, ...rejected]);
    receipt.notReached = [...receipt.notReached, ...copies];
    receipt.endedAt = new Date().toISOString();
    writeReceipt(this.#file, receipt, false);
    await log.keepReceipt(receipt);
    this.#report(all, "erased");
    const before = receipt.before.flatMap(({ streams }) => streams);
    if (before.length > 0) this.#report(before, "found before the lock was lost");
    this.#reportNoMatch([...all, ...before]);
    for (const one of receipt.notReached) this.#say(`not reached: ${one}`);
    this.#say(`receipt: ${path.resolve(this.#file)}`);
  }

  async #eraseStreams(
    names: readonly StreamName[],
    log: ErasureLog | undefined,
  ): Promise<StreamCounts[]> {
    const { command, connection, options } = this.#of;
    const { subjectPrefix: prefix } = command.config;
    const { project, stepped } = options;
    const cutter = new FrameCutter(project, new Set(this.#ids));
    const all: StreamCounts[] = [];
    const { stop } = command.context;
    for (const name of names) {
      const state = this.#ends.get(name.stream);
      if (state === undefined) continue;
      const lost = (from: number, to: number) =>
        this.#note(`messages ${from} to ${to} left ${name.stream} while the stream was being read`);
      const eraser = new StreamEraser({
        connection,
        name,
        state,
        prefix,
        project,
        cutter,
        log,
        stop,
        lost,
        stepped,
      });
      all.push(eraser.counts);
      const sinceMonotonicMs = performance.now();
      const report = () => this.#note(progressOf(eraser.counts, sinceMonotonicMs));
      const progress = setInterval(report, progressMs);
      try {
        await eraser.run();
      } catch (error) {
        if (stop.aborted) throw erasureInterrupted();
        throw error;
      } finally {
        clearInterval(progress);
        this.#receipt?.streams.push({ ...eraser.counts });
        if (this.#receipt !== undefined) writeReceipt(this.#file, this.#receipt, false);
      }
      report();
      if (this.#receipt !== undefined) await log?.keepReceipt(this.#receipt);
    }
    return all;
  }

  /** Erases the person from the rejected items, after all ids are known. */
  async #eraseRejected(isDryRun: boolean): Promise<StreamCounts[]> {
    const { command, connection, options } = this.#of;
    const { stop } = command.context;
    return await eraseRejected({
      manager: await managerFor(connection),
      connection,
      isDryRun,
      stop,
      prefix: command.config.subjectPrefix,
      project: options.project,
      ids: new Set(this.#ids),
    });
  }

  /**
   * Erases the person from the database. Returns true if the person has new ids, because their
   * events must also be erased.
   */
  async #erasePeople(receipt: Receipt): Promise<boolean> {
    const { command, options, people } = this.#of;
    if (people === undefined) {
      receipt.effects = "none was named";
      return false;
    }
    const place = storePlace(command.config);
    const erased = await withoutStack(() => people.erase(options.project, this.#ids));
    const { ids: theirs, remains, ...counts } = erased;
    addErased(receipt, { database: shownPlace(place), ...counts });
    const copies = [...remains, ...replacedDatabases(place)];
    receipt.notReached = [...new Set([...receipt.notReached, ...copies])];
    const { persons, links } = counts;
    this.#say(
      `removed ${counted(persons, "person")} and ${counted(links, "link")} from ${shownPlace(place)}`,
    );
    const late = theirs.filter((id) => !this.#ids.includes(id));
    if (late.length === 0) return false;
    // The ids are printed first, because the database no longer contains the link afterwards.
    this.#note(
      `ids that were linked to the person during the erasure, and are erased too: ${late.join(", ")}`,
    );
    this.#ids = [...this.#ids, ...late];
    addIds(receipt, late);
    return true;
  }

  async #confirm(names: readonly StreamName[]): Promise<void> {
    const { command, options } = this.#of;
    if (options.yes) return;
    const where = names.map(({ stream }) => stream).join(", ");
    const question = `Erase all events of this person from ${where}, and the person from the effects?`;
    await confirm(command, { command: "erase", question, word: options.project });
  }

  #reportNoMatch(all: readonly StreamCounts[]): void {
    const { options, people, given } = this.#of;
    if (this.#isKnown || all.some(({ events }) => events > 0)) return;
    const what = people === undefined ? "no event" : "no person and no event";
    const ids = `${given.length === 1 ? "the distinct id" : "any of the distinct ids"} ${listed(given)}`;
    this.#say(`${what} of ${options.project} has ${ids}`);
  }

  #report(all: readonly StreamCounts[], what: string): void {
    const sum = (name: "events" | "deleted" | "rewritten" | "scanned" | "doubtful") =>
      all.reduce((total, one) => total + one[name], 0);
    this.#say(
      `${counted(sum("events"), "event")} ${what}: ${counted(sum("scanned"), "message")} scanned, ${sum("deleted")} removed, ${sum("rewritten")} rewritten without the person`,
    );
    const doubtful = sum("doubtful");
    if (doubtful > 0)
      this.#note(
        `unreadable lines that contain one of the ids: ${doubtful}. They were not erased, because their person cannot be determined`,
      );
  }
}

function replacedDatabases(place: StorePlace): string[] {
  if (place.kind !== "sqlite") return [];
  const { dir, base } = path.parse(place.file);
  return readdirSync(dir)
    .filter((name) => name.startsWith(`${base}.before-rebuild`))
    .map(
      (name) => `the person in ${path.join(dir, name)}, a database that was replaced by a rebuild`,
    );
}

function progressOf(
  { stream, scanned, bytes, events, to }: StreamCounts,
  sinceMonotonicMs: number,
): string {
  const seconds = Math.max(0.001, (performance.now() - sinceMonotonicMs) / 1_000);
  const rate = (bytes / 1_048_576 / seconds).toFixed(1);
  return `${stream}: ${counted(scanned, "message")} scanned up to ${to}, ${counted(events, "event")} found, ${rate} MiB/s`;
}
