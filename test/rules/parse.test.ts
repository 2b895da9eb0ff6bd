import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rulesDepthMax, rulesFileBytesMax, rulesMax } from "../../src/rules/limits.ts";
import { parseRules, parseRulesBytes, parseStoredRules } from "../../src/rules/parse.ts";
import { bad, rule, whole } from "./rules-kit.ts";

const root = new URL("../../", import.meta.url);

/** Returns the errors as `line:column message`, or the rules. */
function outcome(text: string): unknown {
  return shown(parseRules(text));
}

function shown(parsed: ReturnType<typeof parseRules>): unknown {
  return "errors" in parsed
    ? parsed.errors.map(({ line, column, message }) => `${line}:${column} ${message}`)
    : parsed.rules;
}

const neverMatching = "rules: [{ name: a, drop: true }, { name: b, drop: true }]";

test("parseRules returns every member of a file, and the actions in the order in which they are applied", () => {
  const equals = (...values: unknown[]) => ({ kind: "equals", values });
  expect(outcome(whole)).toEqual({
    privacy: { ip: "truncate", cutQuery: ["email", "token"], cutFragment: true, cookieless: true },
    rules: [
      {
        name: "drop-heartbeats",
        mode: "enforce",
        match: { event: ["heartbeat", "ping*"] },
        actions: [{ kind: "drop" }],
      },
      {
        name: "sample-scrolls",
        mode: "enforce",
        match: {
          event: ["scroll"],
          sdk: ["posthog-js"],
          sdkVersion: ["1.*"],
          lane: "live",
          bot: false,
          properties: new Map<string, unknown>([
            ["plan", equals("free", null)],
            ["beta", { kind: "exists" }],
            ["old", { kind: "absent" }],
            ["n", equals(1)],
            ["host", { kind: "like", patterns: ["localhost*"] }],
            ["mail", { kind: "like", patterns: ["*@a.com", "b"] }],
          ]),
        },
        actions: [{ kind: "sample", share: 0.1 }],
      },
      {
        name: "no-emails",
        mode: "observe",
        match: {},
        actions: [
          { kind: "remove", paths: ["email", "$set.email", "utm\\.source"] },
          { kind: "hash", paths: ["phone"] },
          { kind: "cut", bytes: new Map([["title", 200]]) },
          {
            kind: "set",
            values: new Map<string, unknown>([
              ["source", "web"],
              ["rank", 1],
              ["ok", true],
              ["none", null],
            ]),
          },
        ],
      },
      {
        name: "few",
        mode: "enforce",
        match: { event: ["big"] },
        actions: [
          { kind: "keepOnly", paths: ["url"] },
          { kind: "rename", event: "small" },
        ],
      },
      {
        name: "wrong-orders",
        mode: "enforce",
        match: { event: ["order"], properties: new Map([["total", { kind: "absent" }]]) },
        actions: [{ kind: "quarantine" }],
      },
    ],
    schemas: [
      {
        event: "order completed",
        version: 2,
        mode: "stamp",
        properties: {
          type: "object",
          required: ["total"],
          properties: { total: { type: "number", minimum: 0 }, kind: { enum: ["a", 1, null] } },
          additionalProperties: false,
        },
      },
    ],
  });
});

test("parseRules fills in what a file leaves out", () => {
  const nothing = { ip: "keep", cutQuery: [], cutFragment: false, cookieless: false };
  expect(outcome("rules: []\n")).toEqual({ privacy: nothing, rules: [], schemas: [] });
  expect(outcome("privacy: { cut_query: ['*'] }")).toEqual({
    privacy: { ...nothing, cutQuery: ["*"] },
    rules: [],
    schemas: [],
  });
});

test.each(bad)("parseRules rejects %s", (_, text, errors) => {
  expect((outcome(text) as string[]).toSorted()).toEqual([...errors].toSorted());
});

test("parseStoredRules accepts what only new files may not have", async () => {
  const onlyNew =
    /in which \* is an ordinary character|allow no value|does not allow|"(?:\^|\.)[^"]*" looks|it never matches/;
  const stored = bad.filter(([, , errors]) => errors.every((error) => onlyNew.test(error)));
  expect(stored.map(([title]) => title)).toHaveLength(5);
  for (const [title, text] of [...stored, ["a conflict", neverMatching] as const])
    expect(await parseStoredRules(text), title).toHaveProperty("rules");
});

test("parseRules orders errors by position, and reports at most 50", () => {
  const many = `rules:\n${"  - { name: A, drop: true }\n".repeat(60)}`;
  const found = outcome(many) as string[];
  expect(found).toHaveLength(50);
  expect(found[1]).toBe('3:13 the name of a rule must match [a-z0-9-]{1,64} (got "A")');
});

test("parseRules rejects a file over a limit quickly, with its position", () => {
  const startMs = performance.now();
  const numbered = (count: number) =>
    `rules:\n${Array.from({ length: count }, (_, n) => `- {name: r${n}, match: {event: e${n}}, drop: true}\n`).join("")}`;
  expect(outcome(numbered(rulesMax + 1))).toEqual([
    `${rulesMax + 2}:3 rules has ${rulesMax + 1} elements; the maximum is ${rulesMax}`,
  ]);
  expect(outcome("rules: []\n".padEnd(10 * 1_048_576, "#"))).toEqual([
    `1:1 the file is larger than ${rulesFileBytesMax} bytes, the maximum of a rules file`,
  ]);
  const tooDeep = `maps and lists are nested more than ${rulesDepthMax} levels deep`;
  for (const text of ["[", "- ", "{a: ", "? "])
    expect((outcome(text.repeat(60_000)) as string[])[0]).toContain(tooDeep);
  const names = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join(", ");
  expect((outcome(rule(`set: { ${names} }`)) as string[])[0]).toContain("20000 elements");
  expect(
    (outcome(rule(`match: { event: ${"x".repeat(201)} }\n    drop: true`)) as string[])[0],
  ).toBe("3:21 event has 201 characters; the maximum is 200");
  expect(performance.now() - startMs).toBeLessThan(20_000);
});

test("parseRules accepts the maximum number of rules", () => {
  const rules = Array.from(
    { length: rulesMax },
    (_, n) => `- {name: r${n}, match: {event: e${n}}, drop: true}\n`,
  );
  expect(parseRules(`rules:\n${rules.join("")}`)).toHaveProperty("rules");
});

test("parseStoredRules reads a large file in turns of the event loop, like parseRules", async () => {
  const names = (n: number) => Array.from({ length: 100 }, (_, k) => `e${n}-${k}`).join(", ");
  const rules = Array.from(
    { length: 100 },
    (_, n) => `- {name: r${n}, match: {event: [${names(n)}]}, drop: true}\n`,
  );
  const text = `rules:\n${rules.join("")}`;
  const lexemes = rules.length * 100;
  let turns = 0;
  const count = () => {
    turns++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const parsed = await parseStoredRules(text);
  clearImmediate(counting);
  expect(parsed).toEqual(parseRules(text));
  expect(turns).toBeGreaterThan(lexemes / 1_000);
  expect(await parseStoredRules("rules: [")).toEqual(parseRules("rules: ["));
});

test("parseRulesBytes rejects a binary file and bytes that are not UTF-8, with the position", () => {
  const program = readFileSync(new URL("docs/images/live-page-light.png", root));
  expect(shown(parseRulesBytes(program.subarray(0, 100_000)))).toEqual([
    "1:1 a byte that is not UTF-8: a rules file is text in UTF-8",
  ]);
  const latin = Buffer.from("rules: []\n# für\n", "latin1");
  expect(shown(parseRulesBytes(latin))).toEqual([
    "2:4 a byte that is not UTF-8: a rules file is text in UTF-8",
  ]);
  expect(parseRulesBytes(Buffer.from("\ufeffrules: []\n"))).toHaveProperty("rules");
  expect(shown(parseRulesBytes(Buffer.alloc(rulesFileBytesMax + 1, 0x20)))).toEqual([
    `1:1 the file is larger than ${rulesFileBytesMax} bytes, the maximum of a rules file`,
  ]);
});
