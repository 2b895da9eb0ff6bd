import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { flagsBody, startPassing } from "./upstream-kit.ts";

type Body = string | Buffer;

interface Question {
  readonly body: Body;
  readonly query?: string;
  readonly headers?: Record<string, string>;
}

async function isKeptFor(first: Question, second: Question): Promise<boolean> {
  const passing = await startPassing();
  passing.answer = (_, response) => void response.end("the answer");
  const ask = async ({ body, query = "?v=2", headers = {} }: Question) => {
    const asked = { method: "POST", body, headers };
    return await (await fetch(`${passing.server.url}/flags/${query}`, asked)).text();
  };
  expect(await ask(first)).toBe("the answer");
  await passing.away();
  return (await ask(second)) === "the answer";
}

const form = (json: string) => `data=${encodeURIComponent(btoa(json))}`;
const packings: [string, (json: string) => Body][] = [
  ["JSON", (json) => json],
  ["base64", btoa],
  ["gzip", (json) => gzipSync(json)],
  ["base64 in a form", form],
  ["JSON in a form", (json) => `data=${encodeURIComponent(json)}&ver=1`],
];

test.each(packings)(
  "a flags request in %s with a different sent_at gets the cached answer",
  async (_, pack) => {
    const at = (time: string, id = "ada") =>
      pack(
        `{"token":"phc_x","distinct_id":"${id}","groups":{}, "sent_at" : "${time}","$sent_at":""}`,
      );
    expect(await isKeptFor({ body: at("one") }, { body: at("12") })).toBe(true);
    expect(await isKeptFor({ body: at("one") }, { body: at("one", "bob") })).toBe(false);
  },
);

const ofEvil = (json: string) => `${form(json)}&${form(flagsBody("evil"))}`;
test.each([
  ["numbers that are equal as doubles", '{"id":9007199254740993}', '{"id":9007199254740992}'],
  ["a duplicate member", '{"id":"ada","id":"evil"}', '{"id":"evil"}'],
  ["a second form member", ofEvil(flagsBody("ada")), form(flagsBody("ada"))],
  ["bytes that a form encodes", "data={%C3%83}", Buffer.from("data={\xc3}", "latin1")],
  ["base64 with bytes after its end", `${btoa('{"id":12}')}=evil`, btoa('{"id":12}')],
  ["a sent_at within properties", '{"p":{"sent_at":"1"}}', '{"p":{"sent_at":"2"}}'],
  ["a sent_at in a string", '{"p":"\\"sent_at\\":\\"1\\""}', '{"p":"\\"sent_at\\":\\"2\\""}'],
  ["a sent_at that is not a string", '{"sent_at":{"a":"1"}}', '{"sent_at":{"a":"2"}}'],
  ["a field next to a sent_at", '{"sent_at":"1","id":"a"}', '{"sent_at":"1","id":"b"}'],
  ["malformed JSON", "no JSON", "nor this"],
  ["broken gzip", Buffer.from("\x1f\x8ba", "latin1"), Buffer.from("\x1f\x8bb", "latin1")],
])("a flags request that differs does not get the cached answer: %s", async (_, first, second) => {
  expect(await isKeptFor({ body: first }, { body: second })).toBe(false);
  expect(await isKeptFor({ body: first }, { body: first })).toBe(true);
});

test.each(["content-type", "content-encoding"])(
  "a flags request with a different %s does not get the cached answer",
  async (name) => {
    const asked = (value: string): Question => ({
      body: flagsBody("ada"),
      headers: { [name]: value },
    });
    expect(await isKeptFor(asked("text/a"), asked("text/a"))).toBe(true);
    expect(await isKeptFor(asked("text/a"), asked("text/b"))).toBe(false);
  },
);

test("a flags request of more than 16 KiB is not cached", async () => {
  const ofLength = (bytes: number) => `{"a":"${"x".repeat(bytes - 8)}"}`;
  for (const pack of [(json: string) => json, (json: string) => gzipSync(json)]) {
    const longest = { body: pack(ofLength(16_384)) };
    expect(await isKeptFor(longest, longest)).toBe(true);
    const long = { body: pack(ofLength(16_385)) };
    expect(await isKeptFor(long, long)).toBe(false);
  }
});
