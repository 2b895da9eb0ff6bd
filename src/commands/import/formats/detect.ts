// Tells which format a file is in by its first lines.

import { isObject, type JsonObject, valuesOf } from "../json-text.ts";
import { amplitude } from "./amplitude.ts";
import type { Format } from "./format.ts";
import { mixpanel } from "./mixpanel.ts";
import { penstock, posthog, posthogBatchExport } from "./posthog.ts";
import { segment } from "./segment.ts";

/** The first that recognises a line has it, so those that ask for more stand first. */
const formats: readonly Format[] = [
  penstock,
  amplitude,
  segment,
  posthogBatchExport,
  mixpanel,
  posthog,
];

export const formatNames = ["auto", ...formats.map(({ name }) => name)];

/** Undefined for `auto`. */
export function formatNamed(name: string | undefined): Format | undefined {
  return formats.find((format) => format.name === name);
}

/**
 * A first line that is not one of many: an array of objects or its beginning, or an object over
 * several lines. Some lines further down may be whole objects, and would be taken for all there is.
 */
const opensMore = /^\s*(?:\[\s*(?:\{|$)|\{\s*$)/;

/** Lines looked at before an import begins. */
export const linesLookedAt = 20;

/**
 * The format, or why it cannot be told, for people. Lines that are no JSON objects do not count:
 * each costs itself alone, wherever it stands.
 */
export function detectFormat(lines: readonly string[]): Format | string {
  const begin = lines.find((line) => line.trim() !== "");
  if (begin !== undefined && opensMore.test(begin) && objectsIn(begin).length === 0)
    return notLines(begin);
  const found = new Set<Format | undefined>();
  let first = "";
  for (const line of lines) {
    for (const value of objectsIn(line)) {
      found.add(formats.find((format) => format.recognises(value)));
      if (first === "") first = Object.keys(value).slice(0, 8).join(", ");
    }
  }
  const known = [...found].filter((format) => format !== undefined);
  if (known.length === 1) return known[0]!;
  if (known.length > 1) {
    return `its first lines are ${known.map(({ title }) => title).join(" and ")}: say which it is with --format`;
  }
  if (begin !== undefined && first === "") return notLines(begin);
  return `its first lines are in no known format (they have ${first || "no members"}): say which it is with --format`;
}

/** None where the line cannot be read. */
function objectsIn(line: string): JsonObject[] {
  try {
    return valuesOf(line).values.filter(isObject);
  } catch {
    return [];
  }
}

function notLines(line: string): string {
  if (/^\s*\[/.test(line))
    return "it is a JSON array, and must have one object a line: jq -c '.[]' makes that of it";
  if (/^\s*\{/.test(line)) {
    return "its first lines are no whole JSON objects, and it must have one a line: jq -c . makes that of it, jq -c '.results[]' of what PostHog's API answers";
  }
  return "its first lines are no JSON objects";
}
