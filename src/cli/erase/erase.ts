// `penstock erase` removes a person's events from the streams, and the person from the database of
// the effects. Streams come first: what is applied anew after that is without the person.

import { readdirSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../base/retry.ts";
import { StoreError } from "../../base/store-error.ts";
import type { PeopleErasure } from "../../effects/store/erase-rows.ts";
import { erasureAt } from "../../effects/store/erasure.ts";
import { OtherInstallationError, requireInstallation } from "../../effects/store/installation.ts";
import { readerAt, type StorePlace, shownPlace, storePlace } from "../../effects/store/open.ts";
import { storedIdText } from "../../events/distinct-id.ts";
import { managerOf } from "../../nats/api.ts";
import { subjectOf } from "../../nats/names.ts";
import { erasuresBucketOf } from "../../nats/rewritten.ts";
import { findStreams, type StreamName, storedStream } from "../../reading/stored-stream.ts";
import { type ConfiguredCommand, note, say } from "../configured-command.ts";
import { CommandError, usageExitCode } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId } from "../registered-project.ts";
import { counted } from "../terminal.ts";
import { copiesOf } from "./copies.ts";
import { ErasureLog, LostLockError } from "./erasure-log.ts";
import { FrameCutter } from "./frame-cutter.ts";
import { type Receipt, startedReceipt, userOf, writeReceipt } from "./receipt.ts";
import { checkStream } from "./stream-checks.ts";
import { type EraseStep, type StreamCounts, StreamEraser } from "./stream-eraser.ts";

export interface EraseOptions {
  readonly project: string;
  readonly distinctId: readonly string[];
  readonly dryRun: boolean;
  readonly yes: boolean;
  /** False: there is no database of the effects. */
  readonly effects: boolean;
  readonly receipt?: string | undefined;
  readonly version: string;
  /** For tests, which end the process there. */
  readonly stepped?: (step: EraseStep | "streams" | "people") => void;
}

const questionMs = 5_000;
const progressMs = 5_000;
const namedMax = 20;
/** How often it is begun where its lock is lost, and how long it waits for it then. */
const triesMax = 3;
const againMsMax = 60_000;
const lockAgainMs = 1_000;

/** Throws a CommandError where it is not whole; what was erased by then is gone. */
export async function erase(command: ConfiguredCommand, options: EraseOptions): Promise<void> {
  const { config, context } = command;
  const { project } = options;
  const given = idsOf(options);
  if (config.hubDomain !== undefined)
    throw new CommandError(
      "erase: this is a leaf node, whose hub has gathered its events: run it at the hub. What the leaf still has leaves it by age",
    );
  const connection = await openNats(findNats(config, context.host));
  try {
    await mustBeKnown(connection, config, { command: "erase", project });
    const people = options.effects ? await told(() => peopleOf(command)) : undefined;
    const found = people === undefined ? [] : await told(() => people.idsOf(project, given));
    const ids = [...new Set([...given, ...found])];
    tellIds(command, { project, given, ids, people });
    await new Erasing({ command, options, connection, people, given, ids }).run();
  } finally {
    await connection.close();
  }
}

function idsOf({ project, distinctId }: EraseOptions): string[] {
  const wrong = (what: string) => new CommandError(`erase: ${what}`, usageExitCode);
  mustBeProjectId("erase", project);
  if (distinctId.length === 0) throw wrong("name the person: --distinct-id <id>");
  if (distinctId.some((id) => id.trim() === "")) throw wrong("a distinct id is not blank");
  return [...new Set(distinctId.map(storedIdText))];
}

/** Rejects with a StoreError where the database is another installation's, or not there. */
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

interface Told {
  readonly project: string;
  readonly given: readonly string[];
  readonly ids: readonly string[];
  readonly people: PeopleErasure | undefined;
}

function tellIds(command: ConfiguredCommand, { project, given, ids, people }: Told): void {
  const more = ids.length > namedMax ? ` and ${ids.length - namedMax} more` : "";
  say(
    command,
    `${project}: ${counted(ids.length, "id")}: ${ids.slice(0, namedMax).join(", ")}${more}`,
  );
  if (people === undefined)
    note(command, "without the database of the effects, other ids of the person are not known");
  else if (ids.length > given.length)
    say(command, `known as the same person's: ${ids.length - given.length} of them`);
}

/** What an operator can do something about is told without a stack. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error instanceof OtherInstallationError) throw new CommandError(`erase: ${error.message}`);
    throw new CommandError(`${error.message}. Where there is no such database: --no-effects`);
  }
}

interface ErasingOptions {
  readonly command: ConfiguredCommand;
  readonly options: EraseOptions;
  readonly connection: NatsConnection;
  readonly people: PeopleErasure | undefined;
  readonly given: readonly string[];
  readonly ids: readonly string[];
}

class Erasing {
  readonly #of: ErasingOptions;
  #receipt: Receipt | undefined;
  #file = "";

  constructor(options: ErasingOptions) {
    this.#of = options;
  }

  async run(): Promise<void> {
    const { connection, command, options } = this.#of;
    const { subjectPrefix: prefix } = command.config;
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    const names = await findStreams(manager, prefix);
    if (names.length === 0) throw new CommandError("erase: there are no streams yet");
    if (options.dryRun) {
      const all = await this.#eraseStreams(names, undefined);
      this.#tell(all, "would be erased");
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
    const { host } = command.context;
    for (let tried = 1; ; tried++) {
      const log = await ErasureLog.open(connection, { bucket, replicas, host });
      await this.#lock(log, tried > 1);
      try {
        await this.#erase(names, log);
        return;
      } catch (error) {
        if (!(error instanceof LostLockError) || tried === triesMax) throw error;
        // What it has stored since may hold events that another one has erased.
        note(
          command,
          "the lock was lost, to another erasure or by a standstill of this one: beginning again",
        );
      } finally {
        await log.unlock();
      }
    }
  }

  /** `isAgain`: whoever has it now is waited for. */
  async #lock(log: ErasureLog, isAgain: boolean): Promise<void> {
    const { command } = this.#of;
    const untilMonotonicMs = performance.now() + (isAgain ? againMsMax : 0);
    for (;;) {
      try {
        await log.lock((line) => note(command, line));
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
    const { connection, command, options, given, ids } = this.#of;
    const { project, version, stepped } = options;
    const alsoTheirs = ids.filter((id) => !given.includes(id));
    const last = this.#receipt;
    const receipt = startedReceipt({
      ...{ erasure: log.id, by: userOf(command.context.host), version, project },
      ...{ given, alsoTheirs, last },
    });
    this.#receipt = receipt;
    const isFirst = this.#file === "";
    if (isFirst) this.#file = options.receipt ?? `penstock-erasure-${log.id}.json`;
    writeReceipt(this.#file, receipt, isFirst);
    if (isFirst) note(command, `the receipt is in ${path.resolve(this.#file)}, from now on`);
    await log.keepReceipt(receipt);
    const all = await this.#eraseStreams(names, log);
    stepped?.("streams");
    await this.#erasePeople(receipt);
    stepped?.("people");
    const copies = await copiesOf(connection, names);
    receipt.notReached = [...receipt.notReached, ...copies];
    receipt.endedAt = new Date().toISOString();
    writeReceipt(this.#file, receipt, false);
    await log.keepReceipt(receipt);
    this.#tell(all, "erased");
    const before = receipt.before.flatMap(({ streams }) => streams);
    if (before.length > 0) this.#tell(before, "found before the lock was lost");
    for (const one of receipt.notReached) say(command, `not reached: ${one}`);
    say(command, `receipt: ${path.resolve(this.#file)}`);
  }

  async #eraseStreams(
    names: readonly StreamName[],
    log: ErasureLog | undefined,
  ): Promise<StreamCounts[]> {
    const { command, connection, options, ids } = this.#of;
    const { subjectPrefix: prefix } = command.config;
    const { project, stepped } = options;
    const cutter = new FrameCutter(project, new Set(ids));
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    const all: StreamCounts[] = [];
    const { stop } = command.context;
    for (const name of names) {
      const state = await storedStream(manager, name.stream).state();
      if (state === undefined) continue;
      const lost = (from: number, to: number) =>
        note(command, `messages ${from} to ${to} left ${name.stream} while it was read`);
      const eraser = new StreamEraser({
        ...{ connection, name, state, prefix, project, cutter, log, stop, lost, stepped },
      });
      all.push(eraser.counts);
      const sinceMonotonicMs = performance.now();
      const tell = () => note(command, progressOf(eraser.counts, sinceMonotonicMs));
      const progress = setInterval(tell, progressMs);
      try {
        await eraser.run();
      } catch (error) {
        if (stop.aborted) throw new CommandError("erase: it was interrupted: run it again");
        throw error;
      } finally {
        clearInterval(progress);
        this.#receipt?.streams.push({ ...eraser.counts });
        if (this.#receipt !== undefined) writeReceipt(this.#file, this.#receipt, false);
      }
      tell();
      if (this.#receipt !== undefined) await log?.keepReceipt(this.#receipt);
    }
    return all;
  }

  async #erasePeople(receipt: Receipt): Promise<void> {
    const { command, options, people, ids } = this.#of;
    if (people === undefined) {
      receipt.effects = "none was named";
      return;
    }
    const place = storePlace(command.config);
    const erased = await told(() => people.erase(options.project, ids));
    const { ids: theirs, remains, ...counts } = erased;
    receipt.effects = { database: shownPlace(place), ...counts };
    const late = theirs.filter((id) => !ids.includes(id)).length;
    if (late > 0)
      note(
        command,
        `${counted(late, "more id")} became the person's meanwhile: run it again for their events`,
      );
    receipt.notReached = [...receipt.notReached, ...remains, ...keptFiles(place)];
    const { persons, links } = counts;
    say(
      command,
      `${counted(persons, "person")} and ${counted(links, "link")} are gone from ${shownPlace(place)}`,
    );
  }

  async #confirm(names: readonly StreamName[]): Promise<void> {
    const { command, options } = this.#of;
    if (options.yes) return;
    const { stdin, stderr } = command.context;
    if ((stdin as { readonly isTTY?: boolean }).isTTY !== true)
      throw new CommandError("erase: nobody can be asked here: confirm by --yes", usageExitCode);
    const where = names.map(({ stream }) => stream).join(", ");
    const asked = createInterface({ input: stdin, output: stderr });
    const question = `Erase all their events from ${where}, and what is known of them? This cannot be undone. Type ${options.project}: `;
    const answer = await asked.question(question).finally(() => asked.close());
    if (answer.trim() !== options.project) throw new CommandError("erase: nothing was changed");
  }

  #tell(all: readonly StreamCounts[], what: string): void {
    const { command } = this.#of;
    const sum = (name: "events" | "deleted" | "rewritten" | "scanned" | "doubtful") =>
      all.reduce((total, one) => total + one[name], 0);
    say(
      command,
      `${counted(sum("events"), "event")} ${what}: of ${counted(sum("scanned"), "message")} ${sum("deleted")} removed, ${sum("rewritten")} written anew without them`,
    );
    const doubtful = sum("doubtful");
    if (doubtful > 0)
      note(
        command,
        `lines that no reader can read and that have one of the ids in them: ${doubtful}. They stay: whose they are cannot be told`,
      );
  }
}

/** Databases that rebuilds have kept. */
function keptFiles(place: StorePlace): string[] {
  if (place.kind !== "sqlite") return [];
  const { dir, base } = path.parse(place.file);
  return readdirSync(dir)
    .filter((name) => name.startsWith(`${base}.before-rebuild`))
    .map((name) => `the person in ${path.join(dir, name)}, which is kept beside the database`);
}

function progressOf(
  { stream, scanned, bytes, events, to }: StreamCounts,
  sinceMonotonicMs: number,
): string {
  const seconds = Math.max(0.001, (performance.now() - sinceMonotonicMs) / 1_000);
  const rate = (bytes / 1_048_576 / seconds).toFixed(1);
  return `${stream}: ${counted(scanned, "message")} up to ${to} looked through, ${counted(events, "event")} found, ${rate} MiB/s`;
}
