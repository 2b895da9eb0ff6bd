import { table } from "../terminal.ts";
import type { Finding, Level } from "./finding.ts";

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
    return [level, check, fix === undefined ? text : `${text}. Fix: ${oneLine(fix)}`];
  });
  const lines = table(rows);
  return [...lines, `${findings.length} checked: ${ok} ok, ${warn} warn, ${fail} fail`, ""].join(
    "\n",
  );
}

/** The text may quote a server, so control characters are removed and the length is limited. */
function oneLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, " ");
  return line.length > 1_000 ? `${line.slice(0, 1_000)}…` : line;
}
