export const whole = `# every member once
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
      properties: { plan: [free, null], beta: { exists: true }, old: { absent: true }, n: 1, host: { like: "localhost*" }, mail: { like: ["*@a.com", b] } }
    sample: 0.1
  - name: no-emails
    mode: observe
    set: { source: web, rank: 1, ok: true, none: null }
    cut: { title: 200 }
    hash: [phone]
    remove: [email, $set.email, utm\\.source]
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

/** A file with one rule of these members. */
export const rule = (body: string) => `rules:\n  - name: one\n    ${body}\n`;

/** Files, and their errors as `line:column message`. */
export const bad: readonly (readonly [title: string, text: string, errors: readonly string[]])[] = [
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
    ['3:5 a rule has no member "keepOnly": did you mean keep_only?'],
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
    ["3:5 merge keys (<<) are not supported: repeat the members"],
  ],
  ["a tag", "rules: !!set {}", ["1:14 tags (!!set) are not supported: remove it"]],
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
    "a member that is indented too much",
    rule("match: { event: a }").replace("    match", "      match"),
    [
      "2:11 Nested mappings are not allowed in compact mappings: indent the members of a map equally, and put a text with a colon in quotes",
    ],
  ],
  [
    "a member that is indented too little",
    rule("drop: true").replace("    drop", "   drop"),
    [
      "3:1 Sequence item without - indicator: check the indentation, the quotes, and the space after each colon",
    ],
  ],
  [
    "a comma that is missing",
    '{"rules": [{"name": "a" "drop": true}]}',
    [
      "1:25 Unexpected double-quoted-scalar token: is a comma, a line break or a quote missing before it?",
    ],
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
    "a regular expression",
    rule("match: { event: /(a+)+$/ }\n    drop: true"),
    [
      '3:21 "/(a+)+$/" looks like a regular expression: in a pattern, * matches any characters, and every other character only itself',
    ],
  ],
  [
    "a regular expression without slashes",
    rule('match: { event: ["^ping", "x.*"], sdk: ".*-js" }\n    drop: true'),
    [
      '3:22 "^ping" looks like a regular expression: in a pattern, * matches any characters, and every other character only itself',
      '3:44 ".*-js" looks like a regular expression: in a pattern, * matches any characters, and every other character only itself',
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
    ['3:33 a has no member "b": it may have like, exists, absent'],
  ],
  [
    "two conditions on a property",
    rule("match: { properties: { a: { exists: true, like: x } } }\n    drop: true"),
    ["3:31 a must have one of like: PATTERN, exists: true and absent: true"],
  ],
  [
    "an empty condition",
    rule("match: { properties: { a: {} } }\n    drop: true"),
    ["3:31 a must have one of like: PATTERN, exists: true and absent: true"],
  ],
  [
    "a glob as a value to compare with",
    rule('match: { properties: { a: "*@b.com", b: [1, "c*"], c: "d" } }\n    drop: true'),
    [
      '3:31 a is compared with the text "*@b.com", in which * is an ordinary character: for a glob, write { like: "*@b.com" }',
      '3:49 b is compared with the text "c*", in which * is an ordinary character: for a glob, write { like: "c*" }',
    ],
  ],
  [
    "a number as a pattern of a property",
    rule("match: { properties: { a: { like: 1 } } }\n    drop: true"),
    ["3:39 like must be a text (got the number 1): put it in quotes"],
  ],
  [
    "a typo in the only condition",
    rule("match: { evnt: x }\n    drop: true"),
    ['3:14 match has no member "evnt": did you mean event?'],
  ],
  [
    "an error in a rule before others that it would conflict with",
    "rules:\n  - { name: a, match: { event: [] }, drop: true }\n  - { name: b, drop: true }\n",
    ["2:32 event is empty: remove it"],
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
    "cookieless as a text",
    "privacy: { cookieless: always }",
    ['1:24 cookieless must be true or false (got the text "always")'],
  ],
  [
    "a member of $set in keep_only",
    rule("keep_only: [a, $set.b]"),
    [
      '3:20 keep_only is for properties, and never removes members of $set: name "$set.b" in remove to remove it',
    ],
  ],
  [
    "a hash of all groups",
    rule("hash: [$groups]"),
    [
      "3:12 $groups changes people or groups, so hash cannot replace its value. Its members have no path: name $groups in remove to remove it",
    ],
  ],
  [
    "a hash of all person properties",
    rule("hash: [$set_once]"),
    [
      "3:12 $set_once changes people or groups, so hash cannot replace its value: name one of its members, such as $set_once.email",
    ],
  ],
  [
    "a path with an empty name",
    rule("remove: [$set.]"),
    ['3:14 "$set." has an empty name: a path is email or $set.email'],
  ],
  [
    "a nested property",
    rule("remove: [billing.email]"),
    [
      "3:14 nested properties are not supported; for the property whose name has a dot, write billing\\.email",
    ],
  ],
  [
    "a nested property in $set",
    rule("hash: [$set_once.a\\.b.c]"),
    [
      "3:12 nested properties are not supported; for the property whose name has a dot, write $set_once.a\\.b\\.c",
    ],
  ],
  [
    "a nested property in a condition",
    rule("match: { properties: { a.b: 1 } }\n    drop: true"),
    [
      "3:28 nested properties are not supported; for the property whose name has a dot, write a\\.b",
    ],
  ],
  [
    "a path with a backslash before a letter",
    rule("set: { a\\b: 1 }"),
    ['3:12 "a\\b" has a backslash: write it twice if it is in the name of the property'],
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
  [
    "an action that would change the distinct id: remove: [distinct_id]",
    rule("remove: [distinct_id]"),
    [
      "3:14 remove cannot change distinct_id: clients send the distinct id in the properties or next to them, and rules change neither. Send another id from the client",
    ],
  ],
  [
    "an action that would change the distinct id: hash: [distinct_id]",
    rule("hash: [distinct_id]"),
    [
      "3:12 hash cannot change distinct_id: clients send the distinct id in the properties or next to them, and rules change neither. Send another id from the client",
    ],
  ],
  [
    "an action that would change the distinct id: set: { $distinct_id: x }",
    rule("set: { $distinct_id: x }"),
    [
      "3:12 set cannot change $distinct_id: clients send the distinct id in the properties or next to them, and rules change neither. Send another id from the client",
    ],
  ],
  [
    "a rule without an action",
    rule("match: { event: a }"),
    [
      "2:5 rule one has no action: give it one of drop, quarantine, sample, keep_only, remove, hash, cut, set, rename",
    ],
  ],
  [
    "absent as a text",
    rule("match: { properties: { total: absent } }\n    drop: true"),
    [
      "3:35 total is compared with the text absent: did you mean { absent: true }? For the text, use quotes",
    ],
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
    ["3:15 a must be a whole number of bytes from 1 to 4096 (got 0)"],
  ],
  [
    "a cut of more bytes than the maximum",
    rule("cut: { a: 4097 }"),
    ["3:15 a must be a whole number of bytes from 1 to 4096 (got 4097)"],
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
    "a schema for a glob",
    'schemas: [{ event: "a*", version: 1, properties: {} }]',
    [
      '1:20 the event of a schema is an exact name, in which * is an ordinary character (got "a*"): write a schema for each event',
    ],
  ],
  [
    "a schema with bounds that allow no value",
    `schemas:
  - event: a
    version: 1
    properties:
      properties:
        a: { minimum: 10, maximum: 5 }
        b: { minLength: 9, maxLength: 2 }
        c: { minItems: 2, maxItems: 1 }
        d: { exclusiveMinimum: 5, maximum: 5 }
        e: { minimum: 5, exclusiveMaximum: 5 }
        f: { exclusiveMinimum: 6, exclusiveMaximum: 5 }
        g: { minimum: 5, maximum: 5 }
`,
    [
      "6:36 minimum 10 and maximum 5 allow no value: correct one of them",
      "7:39 minLength 9 and maxLength 2 allow no value: correct one of them",
      "8:37 minItems 2 and maxItems 1 allow no value: correct one of them",
      "9:44 exclusiveMinimum 5 and maximum 5 allow no value: correct one of them",
      "10:44 minimum 5 and exclusiveMaximum 5 allow no value: correct one of them",
      "11:53 exclusiveMinimum 6 and exclusiveMaximum 5 allow no value: correct one of them",
    ],
  ],
  [
    "a schema with values that its type does not allow",
    `schemas:
  - event: a
    version: 1
    properties:
      properties:
        a: { type: string, const: 5 }
        b: { type: [string, boolean], enum: [x, true, null] }
        c: { type: [integer, "null"], enum: [1, 1.5, null] }
        d: { type: number, const: 1 }
`,
    [
      "6:35 const has the number 5, which the type string does not allow: correct one of them",
      "7:55 enum has null, which the type string, boolean does not allow: correct one of them",
      "8:49 enum has the number 1.5, which the type integer, null does not allow: correct one of them",
    ],
  ],
  [
    "a schema with a typo in a keyword",
    "schemas: [{ event: a, version: 1, properties: { properties: { b: { typ: string, maxlength: 1 } } } }]",
    [
      '1:68 the keyword "typ" is not supported: did you mean type?',
      '1:81 the keyword "maxlength" is not supported: did you mean maxLength?',
    ],
  ],
  [
    "a schema with a format",
    "schemas: [{ event: a, version: 1, properties: { properties: { b: { format: email } } } }]",
    [
      '1:68 the keyword "format" is not supported: use pattern, such as ^[^@]+@[^@]+$ for an e-mail address',
    ],
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
    ["1:77 pattern: a pattern must begin with ^"],
  ],
  [
    "a schema with a pattern that can take long",
    'schemas: [{ event: a, version: 1, properties: { properties: { b: { pattern: "^[a-z]*[a-z]$" } } } }]',
    [
      "1:77 pattern: [a-z]* and [a-z] can match the same character, which can take long: use characters after [a-z]* that it does not match",
    ],
  ],
  [
    "a schema with a keyword of another type",
    "schemas: [{ event: a, version: 1, properties: { properties: { b: { type: string, minimum: 1 } } } }]",
    ["1:82 minimum is for number, integer, and the type is string"],
  ],
  [
    "a schema that is nested too deep",
    `schemas: [{ event: a, version: 1, properties: ${"{ items: ".repeat(6)}{}${" }".repeat(6)} }]`,
    [
      "1:49 items is for array, and the type is object",
      "1:92 schemas are nested more than 5 levels deep",
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
