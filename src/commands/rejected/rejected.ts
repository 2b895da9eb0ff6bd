// `penstock rejected list`, `show` and `purge`.

import type { NatsConnection } from "@nats-io/nats-core";
import { readRegistry } from "../../gateway/projects/registry/commands.ts";
import { rulesInUse } from "../../gateway/projects/rules/versions.ts";
import type { RejectedItem } from "../../gateway/quarantine/rejected-item.ts";
import { instantMsOf } from "../../platform/base/day.ts";
import { errorTable } from "../../platform/base/errors.ts";
import { isUuid } from "../../platform/base/forms.ts";
import { objectIn } from "../../platform/base/json.ts";
import { dropTable } from "../../platform/base/warnings.ts";
import { managerOf } from "../../platform/nats/api.ts";
import { durationMs } from "../../platform/settings/parsers.ts";
import { parseStoredRules } from "../../rules/parse.ts";
import { audited } from "../audit.ts";
import { confirm } from "../confirm.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { withNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId, unknownText } from "../registered-project.ts";
import { beginningOf, counted, table } from "../terminal.ts";
import {
  eventOf,
  isSelected,
  type RejectedMessage,
  rejectedMessages,
  removeLines,
  type Selection,
} from "./rejected-messages.ts";

/** The filters of all commands, as given. */
export interface SelectionOptions {
  readonly project?: string;
  readonly reason?: string;
  readonly rule?: string;
  readonly event?: string;
  readonly since?: string;
  readonly until?: string;
}

/** Checks the filters. Throws a CommandError for a wrong one. */
export function selectionOf(
  command: string,
  options: SelectionOptions,
  ids: readonly string[] = [],
): Selection {
  const { project, reason, rule, event, since, until } = options;
  if (project !== undefined) mustBeProjectId(project);
  const wrong = (what: string) => new CommandError(`${command}: ${what}`, usageExitCode);
  const time = (flag: string, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined;
    const ms = instantMsOf(text);
    if (!Number.isNaN(ms)) return ms;
    const ageMs = ageMsOf(text);
    if (ageMs !== undefined) return Date.now() - ageMs;
    throw wrong(
      `${flag} must be a day or a time that exists, such as 2026-01-31 or 2026-01-31T10:00:00Z, or an age such as 24h (got "${text}")`,
    );
  };
  for (const id of ids)
    if (!isUuid(id)) throw wrong(`an id is a uuid that \`rejected list\` prints (got "${id}")`);
  return {
    project,
    reason,
    rule,
    event,
    sinceMs: time("--since", since),
    untilMs: time("--until", until),
    ids: ids.length === 0 ? undefined : new Set(ids.map((id) => id.toLowerCase())),
  };
}

function ageMsOf(text: string): number | undefined {
  try {
    return durationMs(text);
  } catch {
    return undefined;
  }
}

/** Yields the messages with a selected item, each with its selected items. */
export async function* selectedMessages(
  { config, context }: ConfiguredCommand,
  connection: NatsConnection,
  selection: Selection,
): AsyncGenerator<RejectedMessage> {
  const which = { prefix: config.subjectPrefix, project: selection.project, stop: context.stop };
  for await (const one of rejectedMessages(connection, which)) {
    const lines = one.lines.filter((line) => isSelected(line, selection));
    if (lines.length > 0) yield { ...one, lines };
  }
}

/**
 * Checks the names of a selection that has no items. Throws a CommandError for a project that does
 * not exist, a rule that its rules in use do not have, or ids. Without a project, no project has the
 * rule.
 */
export async function requireNames(
  { config }: ConfiguredCommand,
  connection: NatsConnection,
  {
    command,
    project,
    rule,
    ids,
  }: Pick<Selection, "project" | "rule" | "ids"> & { readonly command: string },
): Promise<void> {
  if (project !== undefined) await mustBeKnown(connection, config, { command, project });
  if (ids !== undefined)
    throw new CommandError(
      `${command}: no event is selected, because none has the id ${[...ids].join(" or ")}, or a filter excludes it. Events leave the quarantine if they are replayed or removed, expire, or make room for newer ones`,
    );
  if (rule === undefined) return;
  const { subjectPrefix: prefix, replicas, hubDomain } = config;
  const registry = { prefix, replicas, hubDomain };
  const projects =
    project === undefined ? await projectsWithRules(connection, registry) : [project];
  const names = new Set<string>();
  for (const id of projects) {
    const found = await rulesInUse(connection, { ...registry, id });
    const parsed = await parseStoredRules(found?.text ?? "rules: []");
    if (!("rules" in parsed)) return;
    for (const { name } of parsed.rules.rules) names.add(name);
    for (const { event } of parsed.rules.schemas) names.add(event);
    if (names.has(rule)) return;
  }
  const owner = project === undefined ? "no project has a" : `project ${project} has no`;
  const what = `${command}: no event is selected, and ${owner} rule or schema ${rule}`;
  throw new CommandError(unknownText(what, rule, [...names], "name"));
}

async function projectsWithRules(
  connection: NatsConnection,
  registry: Parameters<typeof readRegistry>[1],
): Promise<string[]> {
  const { projects } = await readRegistry(connection, registry);
  return projects.filter(({ rulesVersion }) => rulesVersion !== undefined).map(({ id }) => id);
}

export interface ListOptions extends SelectionOptions {
  readonly limit: number;
  readonly json: boolean;
}

export async function list(command: ConfiguredCommand, options: ListOptions): Promise<void> {
  const selection = selectionOf("rejected list", options);
  const found = await withNats(command, async (connection) => {
    // A killed command may have left an item twice.
    const items = new Map<string, RejectedItem>();
    for await (const { lines } of selectedMessages(command, connection, selection))
      for (const line of lines) items.set(line.id, line);
    if (items.size === 0)
      await requireNames(command, connection, { command: "rejected list", ...selection });
    return [...items.values()].sort((one, other) => (one.received_at < other.received_at ? -1 : 1));
  });
  const newest = found.slice(-options.limit);
  if (options.json) return say(command, JSON.stringify(newest.map(shownItem), undefined, 2));
  if (found.length === 0) return say(command, "no rejected events");
  for (const row of table([
    ["RECEIVED", "PROJECT", "REASON", "EVENT", "ID", "DETAIL"],
    ...newest.map((line) => [
      `${line.received_at.slice(0, 19)}Z`,
      line.project_id,
      reasonText(line),
      cut(eventOf(line) ?? "-", eventCharactersMax),
      line.id,
      cut(line.detail ?? "", detailCharactersMax),
    ]),
  ]))
    say(command, row);
  say(command, "");
  const more = found.length - newest.length;
  if (more > 0) say(command, `${counted(more, "older item")} not shown (--limit)`);
  say(command, `${counted(found.length, "rejected event")}: ${countsText(found.map(reasonText))}`);
}

const eventCharactersMax = 40;
const detailCharactersMax = 80;

function shownItem(line: RejectedItem) {
  const { id, project_id: project, received_at, lane, reason, detail, rule, rules, item } = line;
  return {
    id,
    project,
    received_at,
    lane,
    reason,
    rule: rule ?? null,
    rules_version: rules ?? null,
    event: eventOf(line) ?? null,
    sdk: sdkOf(line) ?? null,
    detail: detail ?? null,
    bytes: Buffer.byteLength(item),
  };
}

/** Returns the SDK's name and version; undefined if neither the item nor a header names it. */
function sdkOf({ item, sdk }: RejectedItem): string | undefined {
  const properties = sdk ?? objectIn(item)?.["properties"];
  if (typeof properties !== "object" || properties === null) return undefined;
  const [name, version] = ["$lib", "$lib_version"].map((key) => Reflect.get(properties, key));
  if (typeof name !== "string") return undefined;
  return typeof version === "string" ? `${name} ${version}` : name;
}

/** Returns the reason, with the rule or the schema if one has put the item into quarantine. */
function reasonText({ reason, rule }: Pick<RejectedItem, "reason" | "rule">): string {
  return rule === undefined ? reason : `${reason} ${rule}`;
}

/** Returns the number of each text, most frequent first: `no_event 3, rule orders 1`. */
export function countsText(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([text, count]) => `${text} ${count}`)
    .join(", ");
}

function cut(text: string, charactersMax: number): string {
  const oneLine = text.replaceAll(/\s+/g, " ");
  return oneLine.length <= charactersMax ? oneLine : `${beginningOf(oneLine, charactersMax - 1)}…`;
}

export async function show(
  command: ConfiguredCommand,
  id: string,
  { json }: { readonly json: boolean },
): Promise<void> {
  const selection = selectionOf("rejected show", {}, [id]);
  const line = await withNats(command, async (connection) => {
    for await (const { lines } of selectedMessages(command, connection, selection)) return lines[0];
    return undefined;
  });
  if (line === undefined)
    throw new CommandError(
      `rejected show: there is no rejected event ${id}: it was replayed or removed, has expired, or made room for newer ones`,
    );
  if (json)
    return say(command, JSON.stringify({ ...shownItem(line), item: line.item }, undefined, 2));
  const { reason, detail, rule, rules } = line;
  const row = rowOf(reason);
  const facts: [string, string | undefined][] = [
    ["id", line.id],
    ["project", line.project_id],
    ["received", line.received_at],
    ["lane", line.lane],
    ["sdk", sdkOf(line)],
    ["reason", reason],
    [reason === "schema" ? "schema of" : "rule", rule],
    ["rules version", rules === undefined ? undefined : String(rules)],
    ["detail", detail],
    ["meaning", row?.when],
    ["fix", row?.remedy],
  ];
  const shown = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  for (const one of table(shown)) say(command, one);
  say(command, "");
  say(command, line.item);
}

/** Meaning and remedy of the reasons that are not codes of a guard. */
const ruledRows = {
  rule: {
    when: "a rule of the project puts the event into quarantine",
    remedy:
      "Correct the client or the rule (`penstock rules show`). Correct stored events with `rejected replay --set`.",
  },
  schema: {
    when: "the event does not fit the schema that the project has for it",
    remedy:
      "Correct the client or the schema (`penstock rules show`). Correct stored events with `rejected replay --set`.",
  },
};

/** Returns the meaning of a reason and the remedy. */
function rowOf(reason: string): { readonly when: string; readonly remedy: string } | undefined {
  const all: Readonly<Record<string, { when: string; remedy: string }>> = {
    ...errorTable,
    ...dropTable,
    ...ruledRows,
  };
  return all[reason];
}

export interface PurgeOptions extends SelectionOptions {
  readonly dryRun: boolean;
  readonly yes: boolean;
}

const changeTimeoutMs = 60_000;

export async function purge(
  command: ConfiguredCommand,
  ids: readonly string[],
  options: PurgeOptions,
): Promise<void> {
  const selection = selectionOf("rejected purge", options, ids);
  const { dryRun, yes } = options;
  await withNats(command, async (connection) => {
    const found = new Map<string, string>();
    for await (const { lines } of selectedMessages(command, connection, selection))
      for (const line of lines) found.set(line.id, reasonText(line));
    if (found.size === 0) {
      await requireNames(command, connection, { command: "rejected purge", ...selection });
      return say(command, "nothing to remove");
    }
    say(command, `${counted(found.size, "rejected event")}: ${countsText([...found.values()])}`);
    if (dryRun) return say(command, "nothing was changed (--dry-run)");
    const question = `Remove ${counted(found.size, "rejected event")}?`;
    if (!yes) await confirm(command, { command: "rejected purge", question, word: "purge" });
    const entry = { change: "rejected purge", items: found.size, ...options };
    await audited(command, entry, async () => {
      const manager = await managerOf(connection, { timeoutMs: changeTimeoutMs });
      const removal = { manager, connection, isErased: false };
      let removed = 0;
      for await (const one of selectedMessages(command, connection, selection))
        removed += await removeLines(removal, one, ({ id }) => found.has(id));
      say(command, `${counted(removed, "rejected event")} removed`);
      if (removed < found.size)
        note(command, "the other items have expired, or made room for newer ones, meanwhile");
    });
  });
}
