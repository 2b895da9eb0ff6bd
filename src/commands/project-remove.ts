// The command `penstock project remove` disables a project, removes its stored events, and then
// removes the project and its rules. Each step can be repeated, so the operator can run the command
// again if it was killed.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import {
  type BucketPlace,
  DamagedEntryError,
  UnknownProjectError,
} from "../gateway/projects/registry/bucket.ts";
import { readRegistry, removeEntry, setEnabled } from "../gateway/projects/registry/commands.ts";
import { removeSalts } from "../gateway/projects/rules/daily-salts.ts";
import { versionsOf } from "../gateway/projects/rules/stored-versions.ts";
import { hasRules, removeRules } from "../gateway/projects/rules/versions.ts";
import { usageBucketName, usageKey, usageWriteMsMax } from "../gateway/projects/usage/usage.ts";
import { pauseUntilAborted } from "../platform/base/retry.ts";
import { StoreError } from "../platform/base/store-error.ts";
import { countMessages, managerOf, streamInfoOf } from "../platform/nats/api.ts";
import { bucketStream, bucketSubjects, manyProjects, subjectOf } from "../platform/nats/names.ts";
import type { PeopleErasure } from "../readers/effects/store/erase-rows.ts";
import { erasureAt, shownPlace, storePlace } from "../readers/effects/store/open.ts";
import { audited } from "./audit.ts";
import { confirm } from "./confirm.ts";
import { CommandError, type ConfiguredCommand, interruptedExitCode, note, say } from "./context.ts";
import { copiesOf } from "./erase/stream-checks.ts";
import { withNats } from "./nats.ts";
import { mustBeKnown, mustBeProjectId } from "./registered-project.ts";
import { type NamedStream, namedStreams } from "./stream/named-streams.ts";
import { unreadOf } from "./stream/readers.ts";
import { counted } from "./terminal.ts";

export interface RemoveOptions {
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly effects: boolean;
  /** Called after each step. Tests use it to end the process. */
  readonly stepped?: (step: "disabled" | "purged" | "effects") => void;
}

/** Time in ms after which all gateways have read a change of the registry. */
const gatewaysReadMs = 1_000;
const changeTimeoutMs = 60_000;
const notRegistered = "not in the registry";

type Progress = "unchanged" | "disabled" | "purging" | "purged" | "effects" | "unregistered";

export async function removeProject(
  command: ConfiguredCommand,
  id: string,
  options: RemoveOptions,
): Promise<void> {
  const { config } = command;
  mustBeProjectId(id);
  if (config.hubDomain !== undefined)
    throw new CommandError(
      "project remove: the hub has the projects of this leaf node and a copy of their events. Run the command at the hub. The events on the leaf expire by age",
    );
  await withNats(command, async (connection) => {
    await mustBeKnown(connection, config, { command: "project remove", project: id });
    await new Removal(command, connection, { id, ...options }).run();
  });
}

class Removal {
  readonly #command: ConfiguredCommand;
  readonly #connection: NatsConnection;
  readonly #options: RemoveOptions & { readonly id: string };
  readonly #place: BucketPlace & { readonly id: string };
  #progress: Progress = "unchanged";
  /** Whether the registry has an entry that `project enable` can enable again. */
  #isDisabled = false;

  constructor(
    command: ConfiguredCommand,
    connection: NatsConnection,
    options: RemoveOptions & { readonly id: string },
  ) {
    const { subjectPrefix: prefix, replicas } = command.config;
    this.#command = command;
    this.#connection = connection;
    this.#options = options;
    this.#place = { prefix, replicas, id: options.id };
  }

  async run(): Promise<void> {
    const { id, dryRun, yes, effects, stepped } = this.#options;
    const command = this.#command;
    const manager = await managerOf(this.#connection, { timeoutMs: changeTimeoutMs });
    const streams = await namedStreams(command, this.#connection, undefined);
    const state = await this.#stateText();
    if (state === notRegistered) await this.#mustHaveRemains(manager, streams);
    await this.#report(manager, { streams, state });
    if (dryRun) return say(command, "nothing was changed (--dry-run)");
    const question = `Remove the project ${id}, its keys and all of its stored events?`;
    if (!yes) await confirm(command, { command: "project remove", question, word: id });
    this.#mustContinue();
    await audited(command, { change: "project remove", project: id }, async () => {
      await this.#disable();
      stepped?.("disabled");
      await this.#purge(manager, streams, { outcome: "removed", canStop: true });
      this.#progress = "purged";
      stepped?.("purged");
      this.#mustContinue();
      if (effects) {
        await this.#removeEffects();
        this.#progress = "effects";
      }
      stepped?.("effects");
      this.#mustContinue();
      await this.#mustBeOff();
      await removeEntry(this.#connection, this.#place);
      this.#progress = "unregistered";
      // All gateways must have read the removal, so that none writes usage of the project.
      await pauseUntilAborted(gatewaysReadMs + usageWriteMsMax, command.context.stop);
      this.#mustContinue();
      // A gateway that was suspended during the first purge may have stored events after it.
      await this.#purge(manager, streams, { outcome: "stored during the command: removed" });
      await this.#removeUsage(manager);
      await this.#mustBeOff();
      await removeSalts(this.#connection, this.#place);
      const entries = await removeRules(this.#connection, this.#place);
      if (entries > 0) say(command, "its rules and the secret of their hashes: erased");
    });
    say(command, `project ${id} removed`);
  }

  /** Throws a CommandError that states what is done, if a stop signal has arrived. */
  #mustContinue(): void {
    if (!this.#command.context.stop.aborted) return;
    const { id } = this.#options;
    const what = `project remove: interrupted: ${this.#progressText()}`;
    if (this.#progress === "unchanged") throw new CommandError(what, interruptedExitCode);
    const enable = this.#isDisabled && this.#progress !== "unregistered";
    const undo = enable
      ? `. To accept its events again instead, run \`penstock project enable ${id}\``
      : "";
    throw new CommandError(
      `${what}. Run the command again to continue${undo}`,
      interruptedExitCode,
    );
  }

  #progressText(): string {
    const { id } = this.#options;
    const rejected = `project ${id} is ${this.#isDisabled ? "disabled" : "not in the registry"}`;
    switch (this.#progress) {
      case "unchanged":
        return "nothing was changed";
      case "disabled":
        return `${rejected}, and its stored events are not removed yet`;
      case "purging":
        return `${rejected}, and some of its stored events are removed`;
      case "purged":
        return `${rejected}, and its stored events are removed`;
      case "effects":
        return `${rejected}, and its stored events, people, groups, usage and spikes are removed`;
      case "unregistered":
        return `project ${id} and its stored events are removed, and its usage record and rules are not removed yet`;
    }
  }

  /** Throws a CommandError if nothing remains of a project that is not in the registry. */
  async #mustHaveRemains(
    manager: JetStreamManager,
    streams: readonly NamedStream[],
  ): Promise<void> {
    const { id, effects } = this.#options;
    for (const { stream, lane, partition } of streams) {
      const subject = subjectOf(this.#place.prefix, lane, { partition, projectId: id });
      if ((await countMessages(manager, stream, subject)) > 0) return;
    }
    if (await hasRules(this.#connection, this.#place)) return;
    if (await this.#hasUsage(manager)) return;
    if (effects && (await this.#atEffects((erasure) => erasure.hasProject(id)))) return;
    const checked = effects
      ? "events, effects, usage record or rules"
      : "events, usage record or rules";
    throw new CommandError(
      `project remove: there is no project ${id}, and no ${checked} of it. Nothing was changed`,
    );
  }

  /** Prints what the command would remove. */
  async #report(
    manager: JetStreamManager,
    { streams, state }: { readonly streams: readonly NamedStream[]; readonly state: string },
  ): Promise<void> {
    const command = this.#command;
    const { id, effects } = this.#options;
    say(command, `project ${id}: ${state}`);
    for (const { stream, lane, partition } of streams) {
      const of = (projectId: string) =>
        subjectOf(this.#place.prefix, lane, { partition, projectId });
      const messages = await countMessages(manager, stream, of(id));
      say(command, `${stream}: ${counted(messages, "message")}`);
      const shared = await countMessages(manager, stream, of(manyProjects));
      if (shared > 0)
        note(
          command,
          `${stream}: ${counted(shared, "message")} of several projects may contain its events, and stay until they expire (PENSTOCK_FRAME_SCOPE)`,
        );
    }
    const versions = await versionsOf(this.#connection, this.#place);
    if (versions.length > 0) say(command, `rules: ${counted(versions.length, "version")}`);
    const ranges = streams.map(
      (one) =>
        [
          one,
          {
            before: one.info.state.last_seq + 1,
            subject: subjectOf(this.#place.prefix, one.lane, { ...one, projectId: id }),
          },
        ] as const,
    );
    const check = { doing: "project remove", ranges, effects };
    for (const one of await unreadOf(command, manager, check))
      note(command, `${one}, and will not receive them`);
    if (!effects) note(command, "the effects keep its people, groups and usage (--no-effects)");
    else
      say(
        command,
        `${shownPlace(storePlace(command.config))}: its people, groups, usage and spikes`,
      );
    note(command, "targets of sinks keep what they have received, and so do backups");
    for (const copy of await copiesOf(this.#connection, streams))
      note(command, `not removed: ${copy}`);
  }

  async #stateText(): Promise<string> {
    const { entries, projects } = await readRegistry(this.#connection, this.#place);
    const { id } = this.#options;
    const project = projects.find((one) => one.id === id);
    if (project !== undefined)
      return `${counted(project.keys.length, "key")}, ${project.enabled ? "enabled" : "disabled"}`;
    return entries.get(id)?.operation === "PUT" ? "its registry entry is damaged" : notRegistered;
  }

  /** Rejects new events, and waits until the events of requests in progress are stored. */
  async #disable(): Promise<void> {
    const command = this.#command;
    try {
      await setEnabled(this.#connection, { ...this.#place, enabled: false });
      this.#isDisabled = true;
    } catch (error) {
      // A damaged entry is removed instead, because it cannot be disabled. The gateways also reject
      // the keys of a removed project.
      if (error instanceof DamagedEntryError) await removeEntry(this.#connection, this.#place);
      else if (!(error instanceof UnknownProjectError)) throw error;
    }
    this.#progress = "disabled";
    const waitMs = gatewaysReadMs + command.config.requestTimeoutMs;
    note(command, `its events now get a 401; waiting ${waitMs / 1_000} s for requests in progress`);
    await pauseUntilAborted(waitMs, command.context.stop);
  }

  /**
   * Removes the messages of the project, and prints the number of each stream that had some. Keeps
   * those of a project that is enabled or added again while the command runs.
   */
  async #purge(
    manager: JetStreamManager,
    streams: readonly NamedStream[],
    { outcome, canStop = false }: { outcome: string; canStop?: boolean },
  ): Promise<void> {
    const { id } = this.#options;
    const names = streams.map(({ stream }) => stream);
    const ends = await this.#endsBeforeReuse(manager, names);
    for (const { stream, lane, partition } of streams) {
      if (canStop) {
        this.#mustContinue();
        this.#progress = "purging";
      }
      const filter = subjectOf(this.#place.prefix, lane, { partition, projectId: id });
      const purged = await purgeTo(manager, { stream, filter, end: ends.get(stream)! });
      if (purged > 0) say(this.#command, `${stream}: ${counted(purged, "message")} ${outcome}`);
    }
  }

  /**
   * Returns the last sequence of each stream. Throws a CommandError if the project can store events
   * again. If it does not throw, the messages up to these sequences are of the removed project.
   */
  async #endsBeforeReuse(
    manager: JetStreamManager,
    streams: readonly string[],
  ): Promise<ReadonlyMap<string, number>> {
    const ends = new Map<string, number>();
    for (const stream of streams)
      ends.set(stream, (await manager.streams.info(stream)).state.last_seq);
    await this.#mustBeOff();
    return ends;
  }

  /** Throws a CommandError if another command has enabled the project, or added it again. */
  async #mustBeOff(): Promise<void> {
    const { id } = this.#options;
    const { projects } = await readRegistry(this.#connection, this.#place);
    const found = projects.find((one) => one.id === id);
    if (found === undefined || (this.#progress !== "unregistered" && !found.enabled)) return;
    const [change, rest] =
      this.#progress === "unregistered"
        ? [
            "added",
            "Its new events are kept. It has the usage record and rules of the removed project",
          ]
        : ["enabled", "Its remaining events are kept"];
    throw new CommandError(
      `project remove: another command has ${change} the project ${id} meanwhile. ${rest}. To remove it, run the command again`,
    );
  }

  async #removeEffects(): Promise<void> {
    const command = this.#command;
    const { persons, groups, rows, remains } = await this.#atEffects((erasure) =>
      erasure.eraseProject(this.#options.id),
    );
    say(
      command,
      `${shownPlace(storePlace(command.config))}: ${counted(persons, "person")}, ${counted(groups, "group")}, ${counted(rows, "row")} removed`,
    );
    for (const one of remains) note(command, `not removed: ${one}`);
  }

  async #atEffects<T>(work: (erasure: PeopleErasure) => Promise<T>): Promise<T> {
    try {
      return await work(await erasureAt(storePlace(this.#command.config)));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new CommandError(
        `project remove: ${error.message}. Run the command again, or with --no-effects`,
      );
    }
  }

  async #hasUsage(manager: JetStreamManager): Promise<boolean> {
    const { stream, filter } = this.#usage();
    if ((await streamInfoOf(manager, stream)) === undefined) return false;
    const { state } = await manager.streams.info(stream, { subjects_filter: filter });
    return Object.keys(state.subjects ?? {}).length > 0;
  }

  async #removeUsage(manager: JetStreamManager): Promise<void> {
    const { stream, filter } = this.#usage();
    if ((await streamInfoOf(manager, stream)) === undefined) return;
    const ends = await this.#endsBeforeReuse(manager, [stream]);
    await purgeTo(manager, { stream, filter, end: ends.get(stream)! });
  }

  #usage(): { readonly stream: string; readonly filter: string } {
    const bucket = usageBucketName(this.#place.prefix);
    const filter = `${bucketSubjects(bucket)}${usageKey(this.#options.id, "*")}`;
    return { stream: bucketStream(bucket), filter };
  }
}

interface ToPurge {
  readonly stream: string;
  readonly filter: string;
  /** Sequence of the last message to remove. */
  readonly end: number;
}

/** Returns the number of removed messages. */
async function purgeTo(
  manager: JetStreamManager,
  { stream, filter, end }: ToPurge,
): Promise<number> {
  // Before version 2.11, a server that must purge before sequence 1 purges the whole stream.
  if (end === 0) return 0;
  return (await manager.streams.purge(stream, { filter, seq: end + 1 })).purged;
}
