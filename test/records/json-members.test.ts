import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonMembers, ValueOddity } from "../../src/records/json-members.ts";
import { TokenType } from "../../src/records/table.ts";
import { codePoint } from "../kit/code-points.ts";

interface Member {
  readonly name: string;
  readonly value: string;
  readonly type: TokenType;
  readonly oddities: number;
}

const walker = new JsonMembers(Buffer.alloc(0));

function membersOf(text: string): readonly Member[] {
  const around = Buffer.from(`  ${text}]}`);
  walker.begin(around, 2, around.length - 2);
  const found: Member[] = [];
  while (walker.next()) {
    found.push({
      name: around.toString("utf8", walker.nameStart, walker.nameEnd),
      value: around.toString("utf8", walker.valueStart, walker.valueEnd),
      type: walker.valueType,
      oddities: walker.oddities,
    });
  }
  return found;
}

const space = fc.constantFrom("", "", " ", "\t ", "\r");
const member = fc.tuple(fc.string({ unit: codePoint, maxLength: 5 }), fc.json(), space, space);

test("the JSON walker finds members of objects and elements of arrays", () => {
  fc.assert(
    fc.property(fc.array(member, { maxLength: 6 }), (members) => {
      const texts = members.map(
        ([name, value, before, behind]) =>
          `${before}${JSON.stringify(name)}${behind}:${before}${value}${behind}`,
      );
      const found = membersOf(`{${texts.join(",")}}`);
      expect(found.map(({ name }) => JSON.parse(`"${name}"`) as unknown)).toEqual(
        members.map(([name]) =>
          name.toWellFormed() === name ? name : (JSON.parse(JSON.stringify(name)) as unknown),
        ),
      );
      expect(found.map(({ value }) => value)).toEqual(members.map(([, value]) => value.trim()));
      const elements = members.map(([, value, before, behind]) => `${before}${value}${behind}`);
      expect(membersOf(`[${elements.join(",")}]`).map(({ value }) => value)).toEqual(
        members.map(([, value]) => value.trim()),
      );
    }),
  );
});

test.each([
  ["null", TokenType.Null],
  ["true", TokenType.True],
  ["false", TokenType.False],
  ["-1.5e+3", TokenType.Number],
  ['"a"', TokenType.PlainString],
  ['"\\""', TokenType.EscapedString],
  ['""', TokenType.EmptyString],
  ["{}", TokenType.Object],
  ["[]", TokenType.Array],
])("the JSON walker returns the type of %s, with and without neighbours", (value, type) => {
  for (const text of [`[${value}]`, `[1,${value},2]`, `{"a":${value}}`, `{"a":${value},"b":0}`])
    expect(
      membersOf(text)
        .filter((each) => each.value === value)
        .at(0)?.type,
    ).toBe(type);
});

test.each([
  ['{"a":[1]}', 0],
  ['{"a":[ 1]}', ValueOddity.NotPlain],
  ['{"a":"\\n"}', ValueOddity.NotPlain],
  ['{"\\n":1}', 0],
  ['{"a":1e10001}', ValueOddity.Number],
  [`{"a":${"[".repeat(101)}${"]".repeat(101)}}`, ValueOddity.TooDeep],
  [`{"a":${"[".repeat(101)} 1e99999${"]".repeat(101)}}`, 7],
])("the JSON walker returns the flags of %.30s", (text, oddities) => {
  expect(membersOf(text).map((each) => each.oddities)).toEqual([oddities]);
});

test("the JSON walker reads 100,000 levels as one value", () => {
  const deep = `${'[{"a":'.repeat(50_000)}1${"}]".repeat(50_000)}`;
  expect(membersOf(`{"a":${deep},"b":2}`).map(({ value }) => value)).toEqual([deep, "2"]);
});
