// The result of a check. A check does not print or throw, and its texts do not contain secrets.

import { table } from "../terminal.ts";

type Level = "ok" | "warn" | "fail";

export interface Finding {
  /** The name of the check in one or two words. It must not change between releases. */
  readonly check: string;
  readonly level: Level;
  readonly found: string;
  /** The setting or command that fixes the problem. It is only set for `warn` and `fail`. */
  readonly fix?: string;
}

interface Check {
  ok(found: string): Finding;
  warn(found: string, fix: string): Finding;
  fail(found: string, fix: string): Finding;
}

export function checkOf(check: string): Check {
  return {
    ok: (found) => ({ check, level: "ok", found }),
    warn: (found, fix) => ({ check, level: "warn", found, fix }),
    fail: (found, fix) => ({ check, level: "fail", found, fix }),
  };
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

export function shownBytes(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

const shownMax = 5;

export function shownList(items: readonly string[]): string {
  const more = items.length - shownMax;
  return more > 0 ? `${items.slice(0, shownMax).join(", ")} and ${more} more` : items.join(", ");
}

export type Counts = Readonly<Record<Level, number>>;

export function countOf(findings: readonly Finding[]): Counts {
  const of = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  return { ok: of("ok"), warn: of("warn"), fail: of("fail") };
}

export function jsonOf(findings: readonly Finding[], counts: Counts): string {
  return `${JSON.stringify({ ...counts, checks: findings }, undefined, 2)}\n`;
}

export function linesOf(findings: readonly Finding[], { ok, warn, fail }: Counts): string {
  const rows = findings.map(({ check, level, found, fix }) => {
    const text = oneLine(found);
    return [level, check, fix === undefined ? text : `${sentence(text)} Fix: ${oneLine(fix)}`];
  });
  const lines = table(rows);
  return [...lines, `${findings.length} checked: ${ok} ok, ${warn} warn, ${fail} fail`, ""].join(
    "\n",
  );
}

function sentence(text: string): string {
  return text.endsWith("?") ? text : `${text}.`;
}

function oneLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, " ");
  return line.length > 1_000 ? `${line.slice(0, 1_000)}…` : line;
}
