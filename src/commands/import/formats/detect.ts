import { isObject, type JsonObject, valuesOf, withFiniteNumbers } from "../json-text.ts";
import { amplitude } from "./amplitude.ts";
import type { Format } from "./format.ts";
import { mixpanel } from "./mixpanel.ts";
import { penstock, posthog, posthogBatchExport } from "./posthog.ts";
import { segment } from "./segment.ts";

/** The formats from strict to lenient. The first format that recognizes a line is used. */
const formats: readonly Format[] = [
  penstock,
  amplitude,
  segment,
  posthogBatchExport,
  mixpanel,
  posthog,
];

export const formatNames = ["auto", ...formats.map(({ name }) => name)];

export function formatNamed(name: string | undefined): Format | undefined {
  return formats.find((format) => format.name === name);
}

const opensMore = /^\s*(?:\[\s*(?:\{|$)|\{\s*$)/;

export const linesLookedAt = 20;

/** Returns the format, or the reason why it cannot be detected. Ignores invalid lines. */
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
    return `its first lines are ${known.map(({ title }) => title).join(" and ")}: choose a format with --format`;
  }
  if (begin !== undefined && first === "") return notLines(begin);
  return `its first lines are in no known format (they have ${first || "no members"}): choose a format with --format`;
}

function objectsIn(line: string): JsonObject[] {
  try {
    return valuesOf(withFiniteNumbers(line)).values.filter(isObject);
  } catch {
    return [];
  }
}

function notLines(line: string): string {
  if (/^\s*\[/.test(line))
    return "it is a JSON array, but each line must be an object: convert it with jq -c '.[]'";
  if (/^\s*\{/.test(line)) {
    return "its first lines are not complete JSON objects, but each line must be an object: convert it with jq -c ., or a response of PostHog's API with jq -c '.results[]'";
  }
  return "its first lines are not JSON objects";
}
