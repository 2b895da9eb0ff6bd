import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rulesDepthMax, rulesFileBytesMax, rulesMax } from "../../src/rules/limits.ts";
import { parseRules, parseRulesBytes } from "../../src/rules/parse.ts";

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

const whole = `# every member once
privacy:
  ip: truncate
  cut_query: [email, token]
  cut_fragment: true
  cookieless: true
rules:
  - name: drop-heartbeats
    match: { event: [heartbeat, "ping*"] }
    drop: true
  - name: sample-scrolls
    match:
      event: scroll
      sdk: posthog-js
      sdk_version: "1.*"
      lane: live
      bot: false
      properties: { plan: [free, null], beta: { exists: true }, old: { absent: true }, n: 1 }
    sample: 0.1
  - name: no-emails
    mode: observe
    set: { source: web, rank: 1, ok: true, none: null }
    cut: { title: 200 }
    hash: [phone]
    remove: [email, $set.email]
  - name: few
    match: { event: big }
    keep_only: [url]
    rename: small
  - name: wrong-orders
    match: { event: order, properties: { total: { absent: true } } }
    quarantine: true
schemas:
  - event: order completed
    version: 2
    mode: stamp
    properties:
      type: object
      required: [total]
      properties: { total: { type: number, minimum: 0 }, kind: { enum: [a, 1, null] } }
      additionalProperties: false
`;

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
          ]),
        },
        actions: [{ kind: "sample", share: 0.1 }],
      },
      {
        name: "no-emails",
        mode: "observe",
        match: {},
        actions: [
          { kind: "remove", paths: ["email", "$set.email"] },
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

const rule = (body: string) => `rules:\n  - name: one\n    ${body}\n`;

const bad: readonly (readonly [title: string, text: string, errors: readonly string[]])[] = [
  [
    "an empty file",
    "",
    ["1:1 the file is empty: write `rules: []` for a project without rules, or at least one rule"],
  ],
  [
    "a file of comments",
    "# nothing yet\n",
    ["1:1 the file is empty: write `rules: []` for a project without rules, or at least one rule"],
  ],
  [
    "an empty map",
    "{}",
    ["1:1 the file has no member: write `rules: []` for a project without rules"],
  ],
  ["a list", "- a\n", ["1:1 the file must be a map (got a list)"]],
  ["text", "hello", ['1:1 the file must be a map (got the text "hello")']],
  ["an unknown member", "rulez: []", ['1:1 the file has no member "rulez": did you mean rules?']],
  ["rules without a value", "rules:\n", ["1:7 rules must be a list (got nothing)"]],
  [
    "an unknown action",
    rule("keepOnly: [a]"),
    [
      '3:5 a rule has no member "keepOnly": did you mean keep_only?',
      "2:5 rule one has no action: give it one of drop, quarantine, sample, keep_only, remove, hash, cut, set, rename",
    ],
  ],
  ["a rule without a name", "rules:\n  - drop: true\n", ["2:5 a rule has no name: add name: …"]],
  [
    "a name in capitals",
    "rules: [{ name: One, drop: true }]",
    ['1:17 the name of a rule must match [a-z0-9-]{1,64} (got "One")'],
  ],
  [
    "the same name twice",
    "rules:\n  - { name: one, match: { event: a }, drop: true }\n  - { name: one, match: { event: b }, drop: true }\n",
    ["3:13 two rules have the name one: rename one"],
  ],
  ["a duplicate key", rule("drop: true\n    drop: true"), ['4:5 "drop" is a duplicate key']],
  [
    "a boolean of YAML 1.1",
    rule("drop: yes"),
    ['3:11 drop must be true or false (got the text "yes"): YAML 1.2 has only true and false'],
  ],
  [
    "drop: false",
    rule("drop: false"),
    ["3:11 drop must be true: remove the rule to switch it off"],
  ],
  [
    "a value that YAML 1.1 reads as a boolean",
    rule("set: { beta: no }"),
    [
      '3:18 beta is no, which YAML 1.1 reads as a boolean and YAML 1.2 as a text: write true, false, or "no" in quotes',
    ],
  ],
  ["tabs as indentation", "rules:\n\t- name: one\n", ["2:1 Tabs are not allowed as indentation"]],
  [
    "an anchor and an alias",
    "rules: &all []\nschemas: *all\n",
    [
      '1:13 anchors (&"all") are not supported: remove it',
      "2:10 aliases (*name) are not supported: repeat the value",
    ],
  ],
  [
    "a merge key",
    rule("<<: { drop: true }"),
    [
      "2:5 rule one has no action: give it one of drop, quarantine, sample, keep_only, remove, hash, cut, set, rename",
      "3:5 merge keys (<<) are not supported: repeat the members",
    ],
  ],
  [
    "a tag",
    "rules: !!set {}",
    ['1:14 tags ("tag:yaml.org,2002:set") are not supported: remove it'],
  ],
  [
    "a directive",
    "%YAML 1.1\n---\nrules: []\n",
    ["1:1 a %YAML directive is not supported: remove it"],
  ],
  [
    "two documents",
    "rules: []\n---\nrules: []\n",
    ["2:1 a second document begins here (---): a rules file has one document"],
  ],
  [
    "a mapping that is not closed",
    "rules: [",
    ["1:9 Flow sequence in block collection must be sufficiently indented and end with a ]"],
  ],
  [
    "a control character",
    "rules: []\n# \u0007\n",
    ["2:3 control character U+0007: a rules file is text in YAML, and this may be a binary file"],
  ],
  [
    "match without a condition",
    rule("match:\n    drop: true"),
    ["3:11 match must be a map (got nothing)"],
  ],
  [
    "an empty match",
    rule("match: {}\n    drop: true"),
    ["3:12 match has no condition: remove match if the rule is for all events"],
  ],
  [
    "a version that YAML reads as a number",
    rule("match: { sdk_version: 1.10 }\n    drop: true"),
    ["3:27 sdk_version must be a text (got the number 1.10): put it in quotes"],
  ],
  [
    "an unknown lane",
    rule("match: { lane: import }\n    drop: true"),
    ['3:20 lane must be one of live, historical (got "import")'],
  ],
  [
    "an empty list",
    rule("match: { event: [] }\n    drop: true"),
    ["3:21 event is empty: remove it"],
  ],
  [
    "a pattern with many stars",
    rule(`match: { event: "${"*a".repeat(9)}" }\n    drop: true`),
    [`3:21 "${"*a".repeat(9)}" has 9 times *; the maximum is 8`],
  ],
  [
    "a regular expression",
    rule("match: { event: /(a+)+$/ }\n    drop: true"),
    [
      '3:21 "/(a+)+$/" looks like a regular expression: a pattern is a text in which * stands for any characters',
    ],
  ],
  [
    "exists: false",
    rule("match: { properties: { a: { exists: false } } }\n    drop: true"),
    ["3:41 exists must be true: write absent: true"],
  ],
  [
    "a nested value to compare",
    rule("match: { properties: { a: { b: 1 } } }\n    drop: true"),
    [
      '3:33 a has no member "b": it may have exists, absent',
      "3:31 a must have one of exists: true and absent: true",
    ].toSorted(),
  ],
  [
    "a share in per cent",
    rule("sample: 10"),
    ["3:13 sample must be between 0 and 1 (got 10): 0.1 keeps 10 %"],
  ],
  [
    "a share of 0",
    rule("sample: 0"),
    ["3:13 sample must be between 0 and 1 (got 0): write drop: true"],
  ],
  [
    "a share in words",
    rule("sample: half"),
    ['3:13 sample must be a number (got the text "half")'],
  ],
  [
    "a path of three names",
    rule("remove: [a.b.c]"),
    ['3:14 "a.b.c" has 3 names: a path has at most two, as in $set.email'],
  ],
  [
    "a path with an empty name",
    rule("remove: [a.]"),
    ['3:14 "a." has an empty name: a path is email or $set.email'],
  ],
  [
    "a path with a star",
    rule('remove: ["utm_*"]'),
    ['3:14 "utm_*" has a *: a path is the exact name of a property'],
  ],
  [
    "the project's key as a path",
    rule("remove: [token]"),
    ["3:14 token is the project's key, which rules never see or change"],
  ],
  ["a path twice", rule("hash: [a, a]"), ['3:15 hash has "a" twice']],
  [
    "a list of numbers as paths",
    rule("remove: [1]"),
    ["3:14 remove must be a text (got the number 1): put it in quotes"],
  ],
  [
    "a cut of 0 bytes",
    rule("cut: { a: 0 }"),
    ["3:15 a must be a whole number of bytes above 0 (got 0)"],
  ],
  ["a cut list", rule("cut: [a]"), ["3:10 cut must be a map (got a list)"]],
  [
    "a set value that is a list",
    rule("set: { a: [1] }"),
    ["3:15 a must be a text, a number, true, false or null (got a list)"],
  ],
  [
    "a set without a value",
    rule("set: { a }"),
    ["3:12 a has no value: write null, or a value after the colon"],
  ],
  [
    "a number that loses digits",
    rule("set: { a: 12345678901234567890 }"),
    ["3:15 a must be a number of at most 9007199254740991 (got the number 12345678901234567890)"],
  ],
  [
    "a rename to a glob",
    rule('rename: "a*"'),
    ['3:13 rename must be the new name, without * (got "a*")'],
  ],
  [
    "an action next to drop",
    rule("drop: true\n    remove: [a]"),
    ["4:5 remove has no effect next to drop, which ends the evaluation: remove one of them"],
  ],
  [
    "an unknown form of ip",
    "privacy: { ip: remove }",
    ['1:16 ip must be one of keep, truncate, hash, drop (got "remove")'],
  ],
  [
    "cut_query with a star and a name",
    'privacy: { cut_query: ["*", a] }',
    ['1:23 cut_query has "*", which cuts all parameters: write only "*"'],
  ],
  [
    "a schema without a version",
    "schemas: [{ event: a, properties: { type: object } }]",
    ["1:11 a schema has no version: add version: …"],
  ],
  [
    "two schemas of an event",
    "schemas:\n  - { event: a, version: 1, properties: {} }\n  - { event: a, version: 2, properties: {} }\n",
    ['3:14 two schemas are for the event "a": remove one'],
  ],
  [
    "a schema that refers to itself",
    'schemas: [{ event: a, version: 1, properties: { $ref: "#" } }]',
    [
      '1:49 the keyword "$ref" is not supported: a schema cannot refer to itself or to another: write it out',
    ],
  ],
  [
    "a schema with a regular expression",
    'schemas: [{ event: a, version: 1, properties: { properties: { b: { pattern: "(a+)+$" } } } }]',
    [
      '1:68 the keyword "pattern" is not supported: rules have no regular expressions: use enum, minLength or maxLength',
    ],
  ],
  [
    "a schema of another type",
    "schemas: [{ event: a, version: 1, properties: { type: array } }]",
    ["1:47 the schema of properties must have type: object"],
  ],
  [
    "an unknown type in a schema",
    "schemas: [{ event: a, version: 1, properties: { properties: { b: { type: float } } } }]",
    [
      '1:74 type must be one of object, array, string, number, integer, boolean, null (got "float")',
    ],
  ],
];

test.each(bad)("parseRules rejects %s", (_, text, errors) => {
  expect((outcome(text) as string[]).toSorted()).toEqual([...errors].toSorted());
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
    `1:1 the file has 10485760 bytes; the maximum is ${rulesFileBytesMax}`,
  ]);
  const tooDeep = `maps and lists are nested more than ${rulesDepthMax} levels deep`;
  for (const text of ["[", "- ", "{a: ", "? "])
    expect((outcome(text.repeat(60_000)) as string[])[0]).toContain(tooDeep);
  const names = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join(", ");
  expect((outcome(rule(`set: { ${names} }`)) as string[])[0]).toContain("20000 elements");
  expect(
    (outcome(rule(`match: { event: ${"x".repeat(201)} }\n    drop: true`)) as string[])[0],
  ).toBe("3:21 event has 201 characters; the maximum is 200");
  expect(performance.now() - startMs).toBeLessThan(5_000);
});

test("parseRules accepts the maximum number of rules", () => {
  const rules = Array.from(
    { length: rulesMax },
    (_, n) => `- {name: r${n}, match: {event: e${n}}, drop: true}\n`,
  );
  expect(parseRules(`rules:\n${rules.join("")}`)).toHaveProperty("rules");
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
    `1:1 the file has ${rulesFileBytesMax + 1} bytes; the maximum is ${rulesFileBytesMax}`,
  ]);
});
