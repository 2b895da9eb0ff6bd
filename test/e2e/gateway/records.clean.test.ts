// PostgreSQL rejects a row with U+0000. Other stores reject half of a surrogate pair.

import fc from "fast-check";
import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

const malformed = ["\xff", "\xed\xa0\x80", "\xed\xb0\x80", "\xc0\x80", "\xf0\x9f\x98", "\xc3"];
const pieces = [
  "\\u0000",
  "\\ud800",
  "\\uDFFF",
  "\\udbff\\udbff",
  "\\udc00\\ud800",
  "\\ud83d\\ude00",
  "\\\\u0000",
  "\\\\\\u0000",
  "\\ud83d",
  "\\n",
  "\\u001f",
  '\\"',
  "a",
  "$",
  " ",
  "\xc3\xa9",
  "\xf0\x9f\x98\x80",
  "\xef\xbf\xbd",
  "\x7f",
];
const stringToken = (unit: readonly string[]) =>
  fc.array(fc.constantFrom(...unit), { maxLength: 6 }).map((parts) => `"${parts.join("")}"`);
const text = fc.oneof(stringToken(pieces), {
  arbitrary: stringToken([...pieces, ...malformed]),
  weight: 1,
});
const scalar = fc.oneof(
  text,
  fc.constantFrom("1", "-0.10", "1e400", "123456789012345678901234567890", "null", "true"),
);

function objectOf(key: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(fc.tuple(key, value), { maxLength: 4 }).map((members) => {
    return `{${members.map(([name, held]) => `${name}:${held}`).join()}}`;
  });
}

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    objectOf(text, tie("value")),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join()}]`),
  ),
}));
const object = objectOf(text, value);
const reserved = fc.constantFrom(
  ...[
    "$set",
    "$set_once",
    "$unset",
    "$groups",
    "$group_set",
    "distinct_id",
    "alias",
    "$current_url",
  ].map((name) => `"${name}"`),
);
const properties = objectOf(fc.oneof(text, reserved), fc.oneof(object, value));
const unset = fc.oneof(
  fc.array(scalar, { maxLength: 4 }).map((items) => `[${items.join()}]`),
  object,
);
const named = fc.oneof(
  text.map((token) => `"e${token.slice(1)}`),
  fc.constantFrom('"$set"', '"$identify"', '"$pageview"'),
);

const members: Record<string, fc.Arbitrary<string>> = {
  distinct_id: fc.oneof(value, text),
  properties,
  $set: object,
  $set_once: object,
  $unset: unset,
  uuid: text,
  timestamp: text,
  offset: scalar,
  unknown: value,
};
const item = fc.tuple(named, fc.record(members, { requiredKeys: [] })).map(
  ([event, held]) =>
    `{"event":${event}${Object.entries(held)
      .map(([name, token]) => `,"${name}":${token}`)
      .join("")}}`,
);

function* texts(held: unknown): Generator<string> {
  if (typeof held === "string") yield held;
  if (typeof held !== "object" || held === null) return;
  for (const [name, inner] of Object.entries(held)) {
    if (!Array.isArray(held)) yield name;
    yield* texts(inner);
  }
}

test("stored records contain neither U+0000 nor half a surrogate pair", async () => {
  const project = await gateway.project();
  let accepted = 0;
  const bodies = fc.tuple(fc.array(item, { minLength: 1, maxLength: 20 }), fc.option(text));
  await fc.assert(
    fc.asyncProperty(bodies, async ([items, sentAt]) => {
      const envelope = `"api_key":"${project.key}"${sentAt === null ? "" : `,"sent_at":${sentAt}`}`;
      const answer = await gateway.post(
        "/batch/",
        Buffer.from(`{"batch":[${items.join()}],${envelope}}`, "latin1"),
      );
      if (answer.status === 200) accepted += answer.json["accepted"] as number;
      // All items may be invalid, but the body is valid.
      else expect(answer.json["code"]).toBe("invalid_properties");
    }),
    { numRuns: 300 },
  );
  const frames = await gateway.frames(project);
  const lines = frames.flatMap((frame) => frame.text.trimEnd().split("\n"));
  expect(lines).toHaveLength(accepted);
  expect(accepted).toBeGreaterThan(300);
  for (const line of lines) {
    for (const held of texts(JSON.parse(line))) {
      expect(held.includes("\0") || !held.isWellFormed(), line).toBe(false);
    }
  }
}, 60_000);
