import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BodyHint } from "../../../src/gateway/http/port.ts";
import { createPeek, peekedBytesMax } from "../../../src/gateway/intake/peek.ts";
import type { MeteredProject, ProjectLookup } from "../../../src/gateway/projects/project.ts";

const meter: MeteredProject["meter"] = {
  take: () => ({ giveBack: () => {}, countDropped: () => {}, countFiltered: () => {} }),
  refuseUnread: () => undefined,
  countStored: () => {},
  countUnknown: () => {},
};
const known = new Map(
  ["a", "b", "off"].map((id) => [
    `phc_${id}`,
    { id, name: id, keys: [`phc_${id}`], enabled: id !== "off", meter } satisfies MeteredProject,
  ]),
);
const projects: ProjectLookup = {
  refusalOf: () => undefined,
  hasNone: false,
  byKey: (key) => known.get(key),
};
const peekAll = createPeek(projects);
function peek(body: Buffer, isWhole: boolean, apiKey?: string): BodyHint {
  const { projectId, lane, meter: its } = peekAll(body, isWhole, apiKey);
  if (projectId === undefined) expect(its).toBeUndefined();
  return { projectId, lane };
}
const of = (text: string, isWhole = true) => peek(Buffer.from(text), isWhole);
const filling = JSON.stringify({ event: "e", properties: { api_key: "phc_b", text: '"}],\\' } });
const long = `[${Array.from({ length: 200 }, () => filling).join(",")}]`;

const name = fc.constantFrom(
  "api_key",
  "token",
  "$token",
  "historical_migration",
  "batch",
  "x",
  'q"\\',
);
const scalar = fc.oneof(
  fc.constantFrom("phc_a", "phc_b", "phc_off", "", " "),
  fc.boolean(),
  fc.integer(),
  fc.constant(null),
);
const value = fc.oneof(
  scalar,
  fc.array(fc.dictionary(name, scalar)),
  fc.dictionary(name, scalar),
  fc.string(),
);
const properties = fc.tuple(
  fc.constant("properties"),
  fc.dictionary(fc.constantFrom("token", "x"), value),
);

const far = "x".repeat(2 * peekedBytesMax);

describe("the peek at a body for a quota meter", () => {
  test.each([
    ["an envelope that begins with its key", `{"api_key":"phc_a","batch":["${far}"]}`],
    ["an envelope that ends with its key", `{"batch":["${far}"],"api_key":"phc_a"}`],
    ["an envelope whose second key has precedence", `{"token":"phc_b","api_key":"phc_a"}`],
    ["an array of events", `[{"properties":{"token":"phc_b"},"api_key":"phc_a","event":"${far}"}]`],
  ])("finds the project's quota meter in %s", (_, text) => {
    expect(peekAll(Buffer.from(text), true)).toMatchObject({ projectId: "a", meter });
  });

  test("finds the project's quota meter by the key in a header", () => {
    expect(peekAll(Buffer.from('{"token":"phc_b"}'), true, "phc_a")).toMatchObject({ meter });
  });

  test.each([
    [
      "in the same event of many",
      `[{"properties":{"token":"phc_a","x":"${far}"},"api_key":"phc_b"}]`,
    ],
    [
      "after an object",
      `{"properties":{"token":"phc_a","x":"${far}"},"api_key":"phc_b","$set":{"x":1}}`,
    ],
    [
      "after the batch and before an object",
      `{"token":"phc_a","batch":["${far}"],"api_key":"phc_b","metadata":{"x":1}}`,
    ],
    ["under an escaped name", `{"token":"phc_a","api\\u005fkey":"phc_b","batch":["${far}"]}`],
    ["in the part that has not arrived", '{"token":"phc_a","batch":['],
  ])("finds no quota meter if a key with precedence may be %s", (_, text) => {
    const hint = peekAll(Buffer.from(text), !text.endsWith("["));
    expect(hint.projectId).toBe("a");
    expect(hint.meter).toBeUndefined();
  });
});

describe("the peek at a body", () => {
  test.each([
    [
      "phc_a",
      '{"api_key":"phc_b","batch":[],"historical_migration":true}',
      true,
      "a",
      "historical",
    ],
    ["phc_a", "", false, "a", undefined],
    ["phc_a", `{"batch":${long},"historical_migration":true}`, true, "a", "historical"],
    ["phc_off", '{"api_key":"phc_b","batch":[]}', true, undefined, "live"],
    ["", '{"api_key":"phc_b","batch":[]}', true, undefined, "live"],
  ])(
    "finds the project and the stream by the key %j in a header",
    (apiKey, text, isWhole, projectId, lane) => {
      expect(peek(Buffer.from(text), isWhole, apiKey)).toEqual({ projectId, lane });
    },
  );

  test.each([
    ['{"api_key":"phc_a","event":"e"}', "a", "live"],
    [' {\n"api_key" : " phc_a " , "batch":[],"historical_migration":true}', "a", "historical"],
    ['{"token":"phc_a","event":"e"}', "a", "live"],
    ['{"token":"phc_b","api_key":"phc_a"}', "a", "live"],
    ['{"api_key":"","token":"phc_b"}', "b", "live"],
    ['{"api_key":" ","token":"phc_b"}', undefined, "live"],
    ['[{"token":" "},{"token":"phc_a"}]', undefined, "live"],
    ['{"api_key":"phc_a","api_key":"phc_b"}', "b", "live"],
    ['{"api_key":"phc_off"}', undefined, "live"],
    ['{"api_key":"unknown"}', undefined, "live"],
    ['{"properties":{"api_key":"phc_b"},"api_key":"phc_a"}', "a", "live"],
    ['{"text":",\\"api_key\\":\\"phc_b\\"}"}', undefined, "live"],
    ["{}", undefined, "live"],
    ['\ufeff{"api_key":"phc_a","batch":[],"historical_migration":true}', "a", "historical"],
    ['\ufeff\n[{"event":"e","token":"phc_a"}]', "a", "live"],
    [`\ufeff{"batch":${long},"api_key":"phc_a","historical_migration":true}`, "a", "historical"],
    ['\ufeff\ufeff{"api_key":"phc_a"}', undefined, undefined],
    [
      `{"batch":${long},"historical_migration":true,"sentAt":"now","api_key":"phc_a"}`,
      "a",
      "historical",
    ],
    [
      `{"batch":${long}, "api_key" : "phc_a" , "n":1.5e+3,"historical_migration":false }\n`,
      "a",
      "live",
    ],
    [`{"api_key":"phc_a","batch":${long},"historical_migration":true}`, "a", "historical"],
    [`{"api_key":"phc_a","batch":${long},"api_key":"phc_b"}`, "b", undefined],
    [`{"api_key":"phc_a","historical_migration":true,"batch":${long}}`, "a", "historical"],
    [`{"batch":${long},"properties":{"api_key":"phc_a"}}`, undefined, undefined],
    [`{"batch":${long},"x":"\\\\\\",\\"api_key\\":\\"phc_a"}`, undefined, undefined],
    ["[1,2]", undefined, "live"],
    ["[", undefined, "live"],
    ['[{},[1],7,{"event":"e","token":"phc_a"}]', "a", "live"],
    ['[{"token":null,"properties":{"token":"phc_b"}},{"token":"phc_a"}]', "b", "live"],
    ['[{"$token":"phc_a","properties":{"token":"phc_b"}}', "a", "live"],
    ['[{"event":"e","properties":{"title":"t","token":"phc_a","cut":"of', "a", "live"],
    ['[{"event":"e","properties":{"title":"t","token":"phc_', undefined, "live"],
    [
      '[{"event":"e","properties":{"text":"\\"token\\":\\"phc_a\\"","x":{"token":"phc_a"}}}]',
      undefined,
      "live",
    ],
    ['[{"batch":[{"token":"phc_a"}],"historical_migration":true,"token":"phc_b"}]', "b", "live"],
    [`[{"batch":${long},"token":"phc_b"},{"token":"phc_a"}]`, undefined, "live"],
    ['{"event":"e","properties":{"token":"phc_a"}}', "a", "live"],
    ['{"event":"e","properties":{"token":"phc_a"},"properties":7}', undefined, "live"],
    ['{"event":"e","$token":"phc_a","historical_migration":true}', "a", "live"],
    [`{"event":"e","properties":{"token":"phc_a","long":${long}}}`, "a", undefined],
    ['{"batch":[],"$token":"phc_a","properties":{"token":"phc_a"}}', undefined, "live"],
    ["", undefined, undefined],
    ["}", undefined, undefined],
    ['"api_key":"phc_a"}', undefined, undefined],
    ['{"api_key":"phc_a', undefined, undefined],
  ])("finds the project and the stream in %.60s", (text, projectId, lane) => {
    expect(of(text)).toEqual({ projectId, lane });
  });

  test("finds no project in the end of a partial body", () => {
    expect(of(`{"batch":${long},"api_key":"phc_a"}`, false)).toEqual({
      projectId: undefined,
      lane: undefined,
    });
    expect(of(`{"api_key":"phc_a","batch":${long}`, false)).toEqual({
      projectId: "a",
      lane: undefined,
    });
    expect(of('{"api_key":"phc_a"', false)).toEqual({ projectId: undefined, lane: undefined });
  });
  const filler = fc
    .nat({ max: 2 * peekedBytesMax })
    .map((length): [string, unknown] => ["batch", ["x".repeat(length)]]);
  const member = fc.oneof({ weight: 5, arbitrary: fc.tuple(name, value) }, properties);
  const space = fc.constantFrom("", " ", "\n\t");

  test("finds the same project as JSON.parse in an object", () => {
    const members = fc.array(
      fc.oneof({ weight: 6, arbitrary: member }, { weight: 1, arbitrary: filler }),
    );
    fc.assert(
      fc.property(members, space, (held, gap) => {
        const text = textOf(held, gap);
        const hint = of(text);
        const parsed = JSON.parse(text) as Members;
        const names = held.map(([key]) => key);
        const expected = idOf(keyOf(parsed));
        if (text.length <= peekedBytesMax) {
          expect(hint.projectId).toBe(expected);
          const isHistorical = "batch" in parsed && parsed["historical_migration"] === true;
          expect(hint.lane).toBe(isHistorical ? "historical" : "live");
        } else if (
          new Set(names).size === names.length &&
          !/"\$?token"/.test(text) &&
          hint.projectId !== undefined
        ) {
          expect(hint.projectId).toBe(expected);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("finds the same project as JSON.parse in an array", () => {
    const item = fc.oneof(
      { weight: 4, arbitrary: fc.array(member).map((held) => textOf(held, " ")) },
      value.map((held) => JSON.stringify(held)),
    );
    fc.assert(
      fc.property(fc.array(item), space, (items, gap) => {
        const text = `${gap}[${gap}${items.join(`${gap},${gap}`)}${gap}]`;
        fc.pre(text.length <= peekedBytesMax);
        const keys = (JSON.parse(text) as unknown[]).map((held) => {
          const isEvent = typeof held === "object" && held !== null && !Array.isArray(held);
          return isEvent ? keyOf(withoutBatch(held as Members)) : undefined;
        });
        expect(of(text)).toEqual({
          projectId: idOf(keys.find((key) => key !== undefined)),
          lane: "live",
        });
      }),
      { numRuns: 1_000 },
    );
  });

  test("finds a project or nothing in arbitrary bytes", () => {
    const piece = fc.constantFrom(
      "{",
      "}",
      '"',
      "\\",
      ",",
      ":",
      "[",
      "]",
      " ",
      "api_key",
      "true",
      "phc_a",
      "é",
    );
    fc.assert(
      fc.property(fc.array(piece), fc.boolean(), (pieces, isWhole) => {
        const hint = of(pieces.join(""), isWhole);
        expect(["a", "b", undefined]).toContain(hint.projectId);
      }),
    );
  });
});

type Members = Record<string, unknown>;

function keyOf(members: Members): unknown {
  const inner = (members["properties"] as Members | undefined)?.["token"];
  const places = "batch" in members ? [] : [members["$token"], inner];
  return [members["api_key"], members["token"], ...places].find(
    (held) => typeof held === "string" && held !== "",
  );
}

function withoutBatch({ batch: _, ...rest }: Members): Members {
  return rest;
}

function idOf(key: unknown): string | undefined {
  const project = typeof key === "string" ? known.get(key) : undefined;
  return project?.enabled ? project.id : undefined;
}

function textOf(members: readonly (readonly [string, unknown])[], gap: string): string {
  return `{${members.map(([key, held]) => `${gap}${JSON.stringify(key)}${gap}:${gap}${JSON.stringify(held)}`).join(`${gap},`)}${gap}}`;
}
