// Creates random JSON texts that look like events and batches. Reserved keys are at every level,
// and may be duplicated, escaped, or of the wrong type.

import fc from "fast-check";

const whiteSpace = fc.constantFrom("", "", "", "", " ", "\n", "\r\n", "\t  ");

const stringParts = [
  ..."aé😀 {}[],:/'\u007f\u2028",
  "\\n",
  '\\"',
  "\\\\",
  "\\/",
  "\\u0041",
  "\\ud83d\\ude00",
  "\\uD800",
  "\\udc00",
  "\\ud83d\\ud83d\\ude00",
];
const string = fc
  .array(fc.constantFrom(...stringParts), { maxLength: 5 })
  .map((parts) => `"${parts.join("")}"`);

const scalar = fc.oneof(
  { weight: 2, arbitrary: string },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "null",
      "true",
      "false",
      '""',
      "0",
      "-0",
      "17",
      "-1.5E-3",
      "1e400",
      "0.1e+2",
      "123456789012345678901234567890",
      '"pageview"',
      '"\\u0000"',
      "{}",
      "[]",
      "[[],{}]",
    ),
  },
);

const value = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, { weight: 4, arbitrary: scalar }, tie("array"), tie("object")),
  array: fc.array(tie("value"), { maxLength: 3 }).map((values) => `[${values.join(",")}]`),
  object: fc
    .array(fc.tuple(string, tie("value")), { maxLength: 3 })
    .map((members) => objectText(members)),
})).value;

function objectText(members: readonly (readonly [string, string])[]): string {
  return `{${members.map(([key, text]) => `${key}:${text}`).join(",")}}`;
}

const escapeFirst = (name: string): string =>
  `\\u${name.charCodeAt(0).toString(16).padStart(4, "0")}${name.slice(1)}`;

function keyOf(names: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...names).map((name) => `"${name}"`) },
    { weight: 1, arbitrary: fc.constantFrom(...names).map((name) => `"${escapeFirst(name)}"`) },
    { weight: 1, arbitrary: fc.constantFrom(...names).map((name) => `"${name}x"`) },
    { weight: 2, arbitrary: string },
  );
}

function objectOf(
  names: readonly string[],
  inner: ReadonlyMap<string, fc.Arbitrary<string>>,
): fc.Arbitrary<string> {
  const member = keyOf(names).chain((key) => {
    const special = inner.get(key);
    const text = special === undefined ? value : fc.oneof({ weight: 5, arbitrary: special }, value);
    return fc
      .tuple(whiteSpace, whiteSpace, text, whiteSpace)
      .map(
        ([before, between, inside, after]) =>
          `${before}${key}${between}:${before}${inside}${after}`,
      );
  });
  return fc.array(member, { maxLength: 7 }).map((members) => `{${members.join(",")}}`);
}

const propertyNames = [
  "alias",
  "distinct_id",
  "$group_type",
  "$group_key",
  "$survey_id",
  "$set",
  "$group_set",
  "$groups",
  "$process_person_profile",
  "$current_url",
  "$screen_name",
  "plan",
  "token",
  "$distinct_id",
  "$set_once",
  "$unset",
  "$ignore_sent_at",
];
const keyNames = ["api_key", "token", "$token"];
const itemNames = [
  "event",
  "distinct_id",
  "timestamp",
  "uuid",
  "properties",
  "$set",
  "$set_once",
  "extra",
  "$distinct_id",
  "$unset",
  "offset",
  "session_id",
  "window_id",
  "options",
  ...keyNames,
];
const envelopeNames = [...keyNames, "historical_migration", "sent_at", "sentAt", "created_at"];

const projectKey = fc.constantFrom(
  '"phc_a"',
  '"phc_a"',
  '" phc_a\\t"',
  '"\\u0070hc_a"',
  '"phc_b"',
  '"phc_é"',
  '""',
  "null",
  "7",
);
const keyed = new Map(keyNames.map((name) => [`"${name}"`, projectKey]));

const properties = objectOf(propertyNames, keyed);
const item = objectOf(itemNames, new Map([...keyed, ['"properties"', properties]]));
const batch = fc
  .array(fc.oneof({ weight: 5, arbitrary: item }, value), { maxLength: 6 })
  .chain((items) => whiteSpace.map((space) => `[${space}${items.join(`${space},`)}]`));

const root = fc.oneof(
  objectOf(
    [...envelopeNames, "batch", "batch", "batch", "event"],
    new Map([...keyed, ['"batch"', batch]]),
  ),
  objectOf([...itemNames, ...envelopeNames], new Map([...keyed, ['"properties"', properties]])),
  batch,
  value,
);

export const eventLikeJson: fc.Arbitrary<string> = fc
  .tuple(whiteSpace, root, whiteSpace)
  .map(([before, text, after]) => before + text + after);

export const mutatedJson: fc.Arbitrary<Buffer> = fc
  .tuple(
    eventLikeJson,
    fc.array(
      fc.record({
        kind: fc.constantFrom("overwrite", "insert", "remove", "repeat"),
        where: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        byte: fc.oneof(
          fc.constantFrom(
            ...[...'{}[]",:\\tfn0-1.eEu+ \n\f\u0000\u001a'].map((character) =>
              character.charCodeAt(0),
            ),
          ),
          fc.integer({ min: 0, max: 255 }),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, changes]) => {
    const bytes = [...Buffer.from(text)];
    for (const { kind, where, byte } of changes) {
      const at = Math.floor(where * bytes.length);
      if (kind === "overwrite") bytes[at] = byte;
      if (kind === "insert") bytes.splice(at, 0, byte);
      if (kind === "remove") bytes.splice(at, 1);
      if (kind === "repeat") bytes.splice(at, 0, ...bytes.slice(at, at + 3));
    }
    return Buffer.from(bytes);
  });
