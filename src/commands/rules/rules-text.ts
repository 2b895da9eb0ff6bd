// Reads a rules file, and reports its errors.

import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { ruleErrorsMax, rulesFileBytesMax } from "../../rules/limits.ts";
import {
  type ParsedRules,
  parseRulesBytes,
  parseStoredRules,
  type RuleError,
} from "../../rules/parse.ts";
import type { Privacy, RulesFile } from "../../rules/rules-file.ts";
import { CommandError, type ConfiguredCommand, say, usageExitCode } from "../context.ts";
import { counted } from "../terminal.ts";

export interface ReadRules {
  readonly text: string;
  readonly rules: RulesFile;
}

const standardInput = "-";
const readFaults: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EISDIR: "it is a folder",
};

/** Reads a file, or `-` for standard input. Reads little more than a file may have. */
async function readStart({ context }: ConfiguredCommand, file: string): Promise<Buffer> {
  const input =
    file === standardInput ? context.stdin : createReadStream(file, { end: rulesFileBytesMax });
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input) {
      chunks.push(Buffer.from(chunk as Uint8Array));
      bytes += chunks.at(-1)!.length;
      if (bytes > rulesFileBytesMax) break;
    }
  } catch (error) {
    const { code = (error as Error).message } = error as NodeJS.ErrnoException;
    const why = readFaults[code] ?? code;
    throw new CommandError(`rules: cannot read ${file}: ${why}`, usageExitCode);
  }
  return Buffer.concat(chunks);
}

/** Reads and checks a file. The text has no byte order mark. */
export async function checkedFile(
  command: ConfiguredCommand,
  file: string,
): Promise<{ readonly text: string; readonly parsed: ParsedRules }> {
  const bytes = await readStart(command, file);
  return { text: new TextDecoder().decode(bytes), parsed: parseRulesBytes(bytes) };
}

/**
 * Reads a file. Prints all of its errors, and throws a CommandError if there is one. Its message
 * ends with `outcome`.
 */
export async function requireRules(
  command: ConfiguredCommand,
  file: string,
  outcome = "",
): Promise<ReadRules> {
  const { text, parsed } = await checkedFile(command, file);
  if ("rules" in parsed) return { text, rules: parsed.rules };
  const { message } = failedCheck(command, file, parsed.errors);
  throw new CommandError(`${message}${outcome}`);
}

/** Returns how messages name a file. */
export function placeOf(file: string): string {
  return file === standardInput ? "standard input" : file;
}

/** Prints the errors as `file:line:column: message`, and returns the error that ends the command. */
export function failedCheck(
  command: ConfiguredCommand,
  file: string,
  errors: readonly RuleError[],
): CommandError {
  const place = placeOf(file);
  for (const { line, column, message } of errors)
    say(command, `${place}:${line}:${column}: ${message}`);
  const more = errors.length === ruleErrorsMax ? " (the maximum; there may be more)" : "";
  return new CommandError(`${place}: ${counted(errors.length, "error")}${more}`);
}

/** Throws a CommandError if a stored text, written by another release, is not valid here. */
export async function requireValid(text: string, what: string): Promise<RulesFile> {
  const parsed = await parseStoredRules(text);
  if ("rules" in parsed) return parsed.rules;
  const { line, column, message } = parsed.errors[0]!;
  throw new CommandError(`${what} is not valid in this release: ${line}:${column}: ${message}`);
}

/** Returns a summary: `privacy: ip truncate; 3 rules (1 observes); 1 schema`. */
export function summaryOf({ privacy, rules, schemas }: RulesFile): string {
  const parts = privacyParts(privacy);
  const observing = rules.filter(({ mode }) => mode === "observe").length;
  return [
    ...(parts.size > 0 ? [`privacy: ${[...parts.values()].join(", ")}`] : []),
    `${counted(rules.length, "rule")}${observing > 0 ? ` (${observing} in mode observe)` : ""}`,
    counted(schemas.length, "schema"),
  ].join("; ");
}

/** Returns a text of each member that is set, by its name. */
function privacyParts({ ip, cutQuery, cutFragment, cookieless }: Privacy): Map<string, string> {
  const parts = new Map<string, string>();
  if (ip !== "keep") parts.set("ip", `ip ${ip}`);
  if (cutQuery.length > 0) parts.set("cut_query", `cut_query ${cutQuery.join(", ")}`);
  if (cutFragment) parts.set("cut_fragment", "cut_fragment");
  if (cookieless) parts.set("cookieless", "cookieless");
  return parts;
}

/**
 * Returns what a file no longer has: `2 rules (no-emails, no-pings); 1 schema (order); privacy (ip
 * drop)`. Returns undefined if it has all, or if the text before is not valid in this release.
 */
export async function removedParts(
  textBefore: string,
  now: RulesFile,
): Promise<string | undefined> {
  const parsed = await parseStoredRules(textBefore);
  if (!("rules" in parsed)) return undefined;
  const before = parsed.rules;
  const names = ({ rules }: RulesFile) => rules.map(({ name }) => name);
  const events = ({ schemas }: RulesFile) => schemas.map(({ event }) => event);
  const rules = withoutAll(names(before), names(now));
  const schemas = withoutAll(events(before), events(now));
  const kept = privacyParts(now.privacy);
  const privacy = [...privacyParts(before.privacy)].filter(([name]) => !kept.has(name));
  const parts = [
    ...(rules.length > 0 ? [`${counted(rules.length, "rule")} (${listed(rules)})`] : []),
    ...(schemas.length > 0 ? [`${counted(schemas.length, "schema")} (${listed(schemas)})`] : []),
    ...(privacy.length > 0 ? [`privacy (${listed(privacy.map(([, text]) => text))})`] : []),
  ];
  return parts.length > 0 ? parts.join("; ") : undefined;
}

const namedMax = 10;

function listed(names: readonly string[]): string {
  const more = names.length - namedMax;
  return `${names.slice(0, namedMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function withoutAll(names: readonly string[], others: readonly string[]): string[] {
  const excluded = new Set(others);
  return names.filter((name) => !excluded.has(name));
}
