import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { AiMultipart } from "../../../../src/gateway/http/conversion/ai-multipart.ts";
import { oneStored } from "../../../kit/http-server.ts";

const boundary = "b0undary";

interface TestPart {
  readonly name: string;
  readonly content: string | Buffer;
  readonly headers?: string;
}

function bodyOf(parts: readonly TestPart[]): Buffer {
  return Buffer.concat([
    ...parts.flatMap(({ name, content, headers = "" }) => [
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n${headers}\r\n`,
      ),
      Buffer.from(content),
      Buffer.from("\r\n"),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
}

function converted(body: Buffer, type = `multipart/form-data; boundary=${boundary}`) {
  const multipart = new AiMultipart({ kind: "multipart", apiKey: "phc_key", contentType: type });
  const value = multipart.convert(body);
  if (!Buffer.isBuffer(value)) return { code: value.code, detail: value.detail };
  const { batch } = JSON.parse(value.toString().replaceAll("NaN", "null")) as {
    batch: Record<string, unknown>[];
  };
  const answer = multipart.answer(oneStored);
  const text = "body" in answer ? String(answer.body) : "";
  const whole = value.toString();
  return { event: batch[0]!, text: whole, answer: JSON.parse(text) as Record<string, unknown> };
}

const event = { name: "event", content: '{"event":"$ai_generation","distinct_id":"u"}' };

describe("an AI event as a multipart body", () => {
  test.each(["[]", "null", "{}", " [ ] "])(
    "has no properties if the part for properties is %j",
    (none) => {
      const part = { name: "event.properties", content: none };
      const within = { ...event, content: `${event.content.slice(0, -1)},"properties":${none}}` };
      const note = { name: "event.properties.note", content: "n" };
      expect(converted(bodyOf([event, part])).event).toMatchObject({ properties: {} });
      expect(converted(bodyOf([event, part, note])).event).toMatchObject({
        properties: { note: "n" },
      });
      expect(converted(bodyOf([within, note])).event).toMatchObject({ properties: { note: "n" } });
    },
  );

  test("keeps a character that is encoded as two surrogates", () => {
    const content = Buffer.concat([
      Buffer.from('{"a":"'),
      Buffer.from([0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, 0xff]),
      Buffer.from('"}'),
    ]);
    expect(converted(bodyOf([event, { name: "event.properties", content }])).event).toMatchObject({
      properties: { a: "\u{1f600}\ufffd" },
    });
  });

  test("has the properties and blobs of its parts", () => {
    const json = "Content-Type: application/json\r\n";
    const { event: whole, answer } = converted(
      bodyOf([
        { ...event, headers: json },
        { name: "event.properties", content: '{"$ai_model":"m","a":{"b":1}}', headers: json },
        { name: "event.properties.$ai_input", content: '[{"role":"user"}]', headers: json },
        {
          name: "event.properties.$ai_output_choices",
          content: gzipSync('["ho"]'),
          headers: `${json}Content-Encoding: gzip\r\n`,
        },
        { name: "event.properties.note", content: "é", headers: "Content-Type: text/plain\r\n" },
        {
          name: "event.properties.image",
          content: Buffer.from([0, 255, 13, 10]),
          headers: "Content-Type: image/png\r\n",
        },
      ]),
    );
    expect(whole).toEqual({
      event: "$ai_generation",
      distinct_id: "u",
      properties: {
        $ai_model: "m",
        a: { b: 1 },
        $ai_input: [{ role: "user" }],
        $ai_output_choices: ["ho"],
        note: "é",
        image: "data:image/png;base64,AP8NCg==",
      },
    });
    expect(answer?.["accepted_parts"]).toHaveLength(6);
    expect(answer?.["accepted_parts"]).toContainEqual({
      name: "event.properties.note",
      length: 2,
      "content-type": "text/plain",
      "content-encoding": null,
    });
    expect(answer).not.toHaveProperty("parts_not_stored");
  });

  test("accepts properties inside the event part", () => {
    const content = '{"event":"e","distinct_id":"u","properties":{"a":1}}';
    expect(converted(bodyOf([{ name: "event", content }])).event).toMatchObject({
      properties: { a: 1 },
    });
  });

  test("keeps the digits of large numbers", () => {
    const digits = "12345678901234567890";
    const content = `{"event":"e","distinct_id":${digits},"a":NaN}`;
    const json = "Content-Type: application/json\r\n";
    const properties = ` {"n":1.0,"b":-0.1234567890123456789,"blob":1} `;
    const blob = { name: "event.properties.blob", content: `[${digits}, NaN]\n`, headers: json };
    const parts = [{ name: "event.properties", content: properties }, blob];
    const within = `{"properties":{"x":1},"event":"é","properties":${properties},"distinct_id":${digits}}`;
    for (const [whole, text] of [
      [[{ name: "event", content }], `${content.slice(0, -1)},"properties":{}}`],
      [
        [{ name: "event", content }, ...parts],
        `${content.slice(0, -1)},"properties":{${properties.trim().slice(1, -1)},"blob":[${digits}, NaN]}}`,
      ],
      [[{ name: "event", content: within }], within],
      [
        [{ name: "event", content: within }, blob],
        within.replace(/"blob":1} /, `"blob":1,"blob":[${digits}, NaN]} `),
      ],
    ] as const)
      expect(converted(bodyOf(whole)).text).toBe(`{"api_key":"phc_key","batch":[${text}]}`);
  });

  test.each([
    ["null", '{"blob":"x"}'],
    ['{ "a" : "}" }', '{"a" : "}","blob":"x"}'],
    ["{}", '{"blob":"x"}'],
  ])("has the blob of a part added to the properties %s", (properties, stored) => {
    const content = `{"event":"e","properties":${properties}}`;
    const blob = { name: "event.properties.blob", content: "x" };
    const { event: whole } = converted(bodyOf([{ name: "event", content }, blob]));
    expect(whole?.["properties"]).toEqual(JSON.parse(stored));
  });

  test("lists the parts that are not stored", () => {
    const { event: whole, answer } = converted(
      bodyOf([
        event,
        { name: "event.properties.small", content: "x" },
        { name: "event.properties.large", content: "x".repeat(600_000) },
        {
          name: "event.properties.bomb",
          content: gzipSync(Buffer.alloc(5_000_000)),
          headers: "Content-Encoding: gzip\r\n",
        },
        { name: "other", content: "x" },
      ]),
    );
    const names = ["event.properties.large", "event.properties.bomb", "other"];
    const lost = names.map((name) => expect.objectContaining({ name }));
    expect(answer?.["parts_not_stored"]).toEqual(lost);
    expect(whole).toMatchObject({ properties: { small: "x", $ai_parts_not_stored: lost } });
    expect(answer?.["accepted_parts"]).toHaveLength(2);
  });
});

describe("an invalid multipart body", () => {
  const two = (name: string) => [event, { name, content: "{}" }, { name, content: "{}" }];

  test.each([
    ["a different content type", bodyOf([event]), "application/json", /multipart/],
    ["no boundary", bodyOf([event]), "multipart/form-data", /boundary/],
    ["a wrong boundary", bodyOf([event]), "multipart/form-data; boundary=x", /boundary/],
    ["no part", Buffer.from(`--${boundary}--`), undefined, /first part/],
    ["a wrong first part", bodyOf([{ name: "x", content: "" }, event]), undefined, /"x"/],
    ["two parts with one name", bodyOf(two("event.properties.a")), undefined, /two parts/],
    ["malformed JSON", bodyOf([{ name: "event", content: "{" }]), undefined, /not JSON/],
    [
      "two events in one part",
      bodyOf([{ name: "event", content: '{"event":"e"},{"event":"f"}' }]),
      undefined,
      /not JSON/,
    ],
    [
      "malformed JSON with NaN",
      bodyOf([{ name: "event", content: '{"a":NaN' }]),
      undefined,
      /not JSON/,
    ],
    [
      "an event that is not an object",
      bodyOf([{ name: "event", content: "[]" }]),
      undefined,
      /must be a JSON object/,
    ],
    [
      "properties twice",
      bodyOf([
        { name: "event", content: '{"event":"e","properties":{}}' },
        { name: "event.properties", content: "{}" },
      ]),
      undefined,
      /both contain properties/,
    ],
    ["a truncated part", bodyOf([event]).subarray(0, -20), undefined, /ends within/],
    [
      "a body over 960 KiB",
      bodyOf([event, { name: "event.properties", content: " ".repeat(983_041) }]),
      undefined,
      /983040/,
    ],
    [
      "too many parts",
      bodyOf([event, ...Array.from({ length: 100 }, (_, at) => ({ name: `p${at}`, content: "" }))]),
      undefined,
      /100 parts/,
    ],
  ])("is rejected as invalid_payload: %s", (_title, body, type, detail) => {
    const answer = converted(body, type);
    expect([answer.code, answer.detail]).toEqual([
      "invalid_payload",
      expect.stringMatching(detail),
    ]);
  });
});
