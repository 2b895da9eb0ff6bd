// What can be said of a body before it is scanned: right where something is said, whatever the body holds.

import fc from "fast-check";
import { expect, test } from "vitest";
import { createEarlyLook, lookedAtBytesMax } from "../../src/intake/early-look.ts";
import type { MeteredProject, ProjectLookup } from "../../src/types.ts";

const meter: MeteredProject["meter"] = {
  admit: () => 0,
  takesExpansion: () => true,
  exceeds: () => undefined,
  giveBack: () => {},
  countStored: () => {},
  countUnknown: () => {},
  countDropped: () => {},
};
const known = new Map(
  ["a", "b", "off"].map((id) => [
    `phc_${id}`,
    { id, name: id, keys: [`phc_${id}`], enabled: id !== "off", meter } satisfies MeteredProject,
  ]),
);
const projects: ProjectLookup = { refusalOf: () => undefined, byKey: (key) => known.get(key) };
const look = createEarlyLook(projects);
const of = (text: string, isWhole = true) => look(Buffer.from(text), isWhole);
const filling = JSON.stringify({ event: "e", properties: { api_key: "phc_b", text: '"}],\\' } });
const long = `[${Array.from({ length: 200 }, () => filling).join(",")}]`;

test.each([
  ['{"api_key":"phc_a","event":"e"}', "a", "live"],
  [' {\n"api_key" : " phc_a " , "batch":[],"historical_migration":true}', "a", "historical"],
  ['{"token":"phc_a","event":"e"}', "a", "live"],
  ['{"token":"phc_b","api_key":"phc_a"}', "a", "live"],
  ['{"api_key":"","token":"phc_b"}', "b", "live"],
  ['{"api_key":"phc_a","api_key":"phc_b"}', "b", "live"],
  ['{"api_key":"phc_off"}', undefined, "live"],
  ['{"api_key":"nobody\'s"}', undefined, "live"],
  ['{"properties":{"api_key":"phc_b"},"api_key":"phc_a"}', "a", "live"],
  ['{"text":",\\"api_key\\":\\"phc_b\\"}"}', undefined, "live"],
  ["{}", undefined, "live"],
  [`{"batch":${long},"historical_migration":true,"sentAt":"now","api_key":"phc_a"}`, "a", "historical"],
  [`{"batch":${long}, "api_key" : "phc_a" , "n":1.5e+3,"historical_migration":false }\n`, "a", "live"],
  [`{"api_key":"phc_a","batch":${long},"historical_migration":true}`, "a", "historical"],
  [`{"api_key":"phc_a","batch":${long},"api_key":"phc_b"}`, "b", undefined],
  [`{"api_key":"phc_a","historical_migration":true,"batch":${long}}`, "a", "historical"],
  [`{"batch":${long},"properties":{"api_key":"phc_a"}}`, undefined, undefined],
  [`{"batch":${long},"x":"\\\\\\",\\"api_key\\":\\"phc_a"}`, undefined, undefined],
  ["[1,2]", undefined, undefined],
  ["", undefined, undefined],
  ["}", undefined, undefined],
  ['"api_key":"phc_a"}', undefined, undefined],
  ['{"api_key":"phc_a', undefined, undefined],
])("%.60s", (text, projectId, lane) => {
  expect(of(text)).toEqual({ projectId, lane });
});

test("of a part nothing is taken from its end", () => {
  expect(of(`{"batch":${long},"api_key":"phc_a"}`, false)).toEqual({ projectId: undefined, lane: undefined });
  expect(of(`{"api_key":"phc_a","batch":${long}`, false)).toEqual({ projectId: "a", lane: undefined });
  expect(of('{"api_key":"phc_a"', false)).toEqual({ projectId: undefined, lane: undefined });
});

test("what is said of JSON agrees with JSON.parse", () => {
  const name = fc.constantFrom("api_key", "token", "historical_migration", "batch", "x", 'q"\\');
  const scalar = fc.oneof(
    fc.constantFrom("phc_a", "phc_b", "phc_off", ""),
    fc.boolean(),
    fc.integer(),
    fc.constant(null),
  );
  const value = fc.oneof(scalar, fc.array(fc.dictionary(name, scalar)), fc.dictionary(name, scalar), fc.string());
  const filler = fc
    .nat({ max: 2 * lookedAtBytesMax })
    .map((length): [string, unknown] => ["batch", ["x".repeat(length)]]);
  const member = fc.oneof({ weight: 5, arbitrary: fc.tuple(name, value) }, { weight: 1, arbitrary: filler });
  const space = fc.constantFrom("", " ", "\n\t");
  fc.assert(
    fc.property(fc.array(member), space, (members, gap) => {
      const text = `{${members.map(([key, held]) => `${gap}${JSON.stringify(key)}${gap}:${gap}${JSON.stringify(held)}`).join(`${gap},`)}${gap}}`;
      const hint = of(text);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const isSeenWhole = text.length <= lookedAtBytesMax;
      const nameCounts = new Set(members.map(([key]) => key));
      const key = [parsed["api_key"], parsed["token"]].find((held) => typeof held === "string" && held !== "");
      const project = typeof key === "string" ? known.get(key) : undefined;
      const expected = project?.enabled ? project.id : undefined;
      if (isSeenWhole) {
        expect(hint.projectId).toBe(expected);
        expect(hint.lane).toBe(parsed["historical_migration"] === true ? "historical" : "live");
      } else if (nameCounts.size === members.length && !nameCounts.has("token") && hint.projectId !== undefined) {
        expect(hint.projectId).toBe(expected);
      }
    }),
    { numRuns: 500 },
  );
});

test("any bytes are looked at without a fault", () => {
  const piece = fc.constantFrom("{", "}", '"', "\\", ",", ":", "[", "]", " ", "api_key", "true", "phc_a", "é");
  fc.assert(
    fc.property(fc.array(piece), fc.boolean(), (pieces, isWhole) => {
      const hint = of(pieces.join(""), isWhole);
      expect(["a", "b", undefined]).toContain(hint.projectId);
    }),
  );
});
