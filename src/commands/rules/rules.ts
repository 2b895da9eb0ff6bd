// The `rules` and `schema` commands, except `rules check --against`.

import type { NatsConnection } from "@nats-io/nats-core";
import { isVersion, ProjectError, requireId } from "../../gateway/projects/registry/bucket.ts";
import { requireExisting } from "../../gateway/projects/registry/commands.ts";
import {
  type RulesVersion,
  readVersion,
  versionsOf,
} from "../../gateway/projects/rules/stored-versions.ts";
import {
  applyRules,
  currentRules,
  rulesInUse,
  versionsMax,
} from "../../gateway/projects/rules/versions.ts";
import { audited, authorOf } from "../audit.ts";
import { confirm } from "../confirm.ts";
import { CommandError, type ConfiguredCommand, say, usageExitCode } from "../context.ts";
import { atRegistry, requireArguments } from "../registered-project.ts";
import { forTerminal, table } from "../terminal.ts";
import { changedLines } from "./line-diff.ts";
import {
  checkedFile,
  failedCheck,
  placeOf,
  type ReadRules,
  removedParts,
  requireRules,
  requireValid,
  summaryOf,
} from "./rules-text.ts";

/** A project of a registry. */
type At = Parameters<typeof rulesInUse>[1];

const shaCharsShown = 12;

/** Checks a file without NATS. Exits with code 1 if it has an error. */
export async function check(
  command: ConfiguredCommand,
  file: string,
  asJson: boolean,
): Promise<void> {
  const { parsed } = await checkedFile(command, file);
  const errors = "errors" in parsed ? parsed.errors : [];
  if (asJson) {
    say(command, JSON.stringify({ file, ok: errors.length === 0, errors }, undefined, 2));
    if (errors.length > 0) throw new CommandError("");
  } else if ("errors" in parsed) throw failedCheck(command, file, errors);
  else say(command, `${placeOf(file)}: ok: ${summaryOf(parsed.rules)}`);
}

export interface ApplyOptions {
  /** The version that must be in use, 0 for no rules. Without it, no version is required. */
  readonly ifVersion?: number;
  readonly yes: boolean;
}

export async function apply(
  command: ConfiguredCommand,
  id: string,
  file: string,
  options: ApplyOptions,
): Promise<void> {
  requireArguments(() => requireId(id));
  const read = await requireRules(command, file, "; nothing was changed");
  const entry = { change: "rules apply", project: id, file };
  await atRegistry(command, (connection, place) =>
    replaceRules(command, connection, { ...place, id, ...read, ...options, entry }),
  );
}

export async function rollback(
  command: ConfiguredCommand,
  id: string,
  { version, yes }: { readonly version: string; readonly yes: boolean },
): Promise<void> {
  requireArguments(() => requireId(id));
  const from = versionOf("rules rollback", version);
  const entry = { change: "rules rollback", project: id, to: from };
  await atRegistry(command, async (connection, place) => {
    const at = { ...place, id };
    const { text } = await requireVersion(connection, { ...at, version: from });
    const rules = await requireValid(text, `version ${from} of project ${id}`);
    await replaceRules(command, connection, { ...at, text, rules, from, yes, entry });
  });
}

interface Replacement extends At, ReadRules, ApplyOptions {
  readonly from?: number;
  readonly entry: Parameters<typeof audited>[1];
}

/** Asks for confirmation if the new text lacks rules, schemas or privacy of the version in use. */
async function replaceRules(
  command: ConfiguredCommand,
  connection: NatsConnection,
  options: Replacement,
): Promise<void> {
  const { id, text, rules, ifVersion, yes, entry } = options;
  const { version: base = 0, found } = await currentRules(connection, options);
  if (ifVersion !== undefined && ifVersion !== base)
    throw new CommandError(
      `rules apply: project ${id} ${base === 0 ? "has no rules" : `uses version ${base} of its rules`} (--if-version ${ifVersion}); nothing was changed. Compare with \`penstock rules diff ${id} FILE\``,
    );
  const textBefore = found?.text ?? "";
  const lines = changedLines(textBefore, text);
  if (lines.length === 0 && textBefore !== text) say(command, "only the ends of lines differ");
  for (const line of lines) say(command, line);
  const removed = await removedParts(textBefore, rules);
  if (removed !== undefined) say(command, `removes ${removed}`);
  if (removed !== undefined && !yes)
    await confirm(command, {
      command: entry.change,
      question: `Replace all rules of project ${id}, and remove ${removed}?`,
      undo: `\`penstock rules rollback ${id} ${base}\` undoes it.`,
      word: id,
    });
  const change = { ...options, author: authorOf(command), ifVersion: base };
  const applied = await audited(command, entry, () => applyRules(connection, change));
  const { version, isNew } = applied;
  if (!isNew) {
    say(command, `project ${id}: nothing to change: version ${version} has this text`);
    return;
  }
  const was = base === 0 ? "it had no rules" : `was ${base}`;
  say(command, `project ${id}: version ${version} of its rules (${was})`);
  say(command, `in use within 2 s: ${summaryOf(rules)}`);
}

interface ShowOptions {
  readonly version?: string | undefined;
  readonly json: boolean;
}

/** Prints the text as it was written, so that its output can be applied again. */
export async function show(
  command: ConfiguredCommand,
  id: string,
  { version, json }: ShowOptions,
): Promise<void> {
  requireArguments(() => requireId(id));
  const number = version === undefined ? undefined : versionOf("rules show", version);
  const found = await atRegistry(command, (connection, place) => {
    const at = { ...place, id };
    return number === undefined
      ? requireInUse(connection, at)
      : requireVersion(connection, { ...at, version: number });
  });
  if (json)
    return say(command, JSON.stringify({ ...versionJson(found), text: found.text }, undefined, 2));
  const { stdout } = command.context;
  const isTerminal = (stdout as { isTTY?: boolean }).isTTY === true;
  stdout.write(isTerminal ? forTerminal(found.text) : found.text);
}

/** Prints the stored versions, the newest first. */
export async function history(
  command: ConfiguredCommand,
  id: string,
  asJson: boolean,
): Promise<void> {
  requireArguments(() => requireId(id));
  const { versions, inUse } = await atRegistry(command, async (connection, place) => {
    const at = { ...place, id };
    const { rulesVersion } = await requireExisting(connection, at);
    const numbers = (await versionsOf(connection, at)).reverse();
    const found = await Promise.all(
      numbers.map((version) => readVersion(connection, { ...at, version })),
    );
    return { versions: found.filter((one) => one !== undefined), inUse: rulesVersion };
  });
  const isInUse = ({ version }: RulesVersion) => version === inUse;
  if (asJson) {
    const shown = versions.map((one) => ({ ...versionJson(one), in_use: isInUse(one) }));
    return say(command, JSON.stringify(shown, undefined, 2));
  }
  if (versions.length === 0) return say(command, `project ${id} has no rules`);
  const rows = versions.map((one) => [
    String(one.version),
    new Date(one.atMs).toISOString(),
    one.author,
    one.sha256.slice(0, shaCharsShown),
    [
      ...(isInUse(one) ? ["in use"] : []),
      ...(one.from === undefined ? [] : [`the text of ${one.from}`]),
    ].join(", "),
  ]);
  for (const line of table([["VERSION", "WRITTEN", "AUTHOR", "SHA-256", ""], ...rows]))
    say(command, line);
}

/** What `diff` compares. */
interface Side {
  readonly text: string;
  readonly version?: number;
  readonly file?: string | undefined;
}

/**
 * Prints the changed lines: without versions, from the version before to the one in use; with one
 * version or file, between it and the one in use; with two versions, from the first to the second.
 */
export async function diff(
  command: ConfiguredCommand,
  id: string,
  which: readonly [first?: string | undefined, second?: string | undefined],
): Promise<void> {
  requireArguments(() => requireId(id));
  const [first, second] = which;
  const isFile = first !== undefined && !/^\d+$/.test(first);
  if (isFile && second !== undefined)
    throw new CommandError(
      `rules diff: give two versions, one version or one file (got "${first}" and "${second}")`,
      usageExitCode,
    );
  const file = isFile ? await requireRules(command, first) : undefined;
  const versions = (isFile ? [] : [first, second])
    .filter((text) => text !== undefined)
    .map((text) => versionOf("rules diff", text));
  const none: Side = { text: "" };
  const [from, to] = await atRegistry(command, async (connection, place): Promise<[Side, Side]> => {
    const at = { ...place, id };
    const [one, other] = await Promise.all(
      versions.map((version) => requireVersion(connection, { ...at, version })),
    );
    if (one !== undefined && other !== undefined) return [one, other];
    if (file !== undefined)
      return [(await rulesInUse(connection, at)) ?? none, { ...file, file: first }];
    const inUse = await requireInUse(connection, at);
    if (one !== undefined) return [one, inUse];
    const earlier = (await versionsOf(connection, at)).filter((one) => one < inUse.version);
    const before = earlier.at(-1);
    const found = before && (await readVersion(connection, { ...at, version: before }));
    return [found || none, inUse];
  });
  const name = ({ version, file }: Side) =>
    file ?? (version === undefined ? "no rules" : `version ${version}`);
  const lines = changedLines(from.text, to.text);
  const same = lines.length === 0 ? " have the same lines" : "";
  say(command, `project ${id}: ${name(from)} and ${name(to)}${same}`);
  for (const line of lines) say(command, line);
}

async function requireInUse(connection: NatsConnection, at: At): Promise<RulesVersion> {
  const found = await rulesInUse(connection, at);
  if (found !== undefined) return found;
  throw new ProjectError(
    `project ${at.id} has no rules: its events are stored as they are sent. Give it rules with \`penstock rules apply ${at.id} FILE\``,
  );
}

async function requireVersion(
  connection: NatsConnection,
  at: At & { readonly version: number },
): Promise<RulesVersion> {
  await requireExisting(connection, at);
  const found = await readVersion(connection, at);
  if (found !== undefined) return found;
  const stored = await versionsOf(connection, at);
  const range = stored.length === 0 ? "it has none" : `it has ${stored.join(", ")}`;
  throw new ProjectError(
    `project ${at.id} has no version ${at.version} of its rules: ${range} (at most the newest ${versionsMax} are kept)`,
  );
}

function versionOf(command: string, text: string): number {
  const version = Number(text);
  if (/^\d+$/.test(text) && isVersion(version)) return version;
  throw new CommandError(
    `${command}: the version must be a whole number above 0 (got "${text}")`,
    usageExitCode,
  );
}

function versionJson({ version, atMs, author, sha256, from }: RulesVersion): object {
  return {
    version,
    written: new Date(atMs).toISOString(),
    author,
    sha256,
    ...(from === undefined ? {} : { from }),
  };
}
