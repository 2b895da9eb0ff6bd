import { describe, expect, test } from "vitest";
import { formatNamed } from "../../../src/commands/import/formats/detect.ts";
import { bodiesOf } from "./bodies.ts";

const uuid = "018f0000-0000-7000-8000-000000000001";
const base = { event: "seen", distinct_id: "u", timestamp: "2024-07-06T12:00:00Z" };

function line(members: object = {}): string {
  return `${JSON.stringify({ ...base, properties: {}, ...members })}\n`;
}

async function sentOf(text: string | Buffer, options = {}): Promise<Record<string, unknown>[]> {
  const { bodies } = await bodiesOf([text], options);
  return bodies.flatMap((body) => (JSON.parse(body) as { batch: [] }).batch);
}

async function uuidsOf(text: string, options = {}): Promise<unknown[]> {
  return (await sentOf(text, options)).map((event) => event["uuid"]);
}

test("import sends a line with a uuid unchanged", async () => {
  const odd = `{ "event":"s\\u0065en" , "uuid":"${uuid}","distinct_id":1e2,"big":12345678901234567890}`;
  const { bodies } = await bodiesOf([`${odd}\r\n`]);
  const head = '{"api_key":"phc_test","historical_migration":true,"batch":[';
  expect(bodies[0]!.trimEnd()).toBe(`${head}${odd}]}`);
});

test("import sends a line unchanged next to a malformed line", async () => {
  const odd = `{ "event":"e", "uuid":"${uuid}","distinct_id":1e2,"big":12345678901234567890}`;
  const { bodies } = await bodiesOf([`${odd}\nnot json\n`]);
  expect(bodies[0]).toContain(`"batch":[${odd}]`);
});

test("import treats a raw carriage return between tokens as white space", async () => {
  const [event] = await sentOf('{\r"event":\r"a\\\\","uuid":"u"\r,"distinct_id":"\\""}\r\r\n');
  expect(event).toMatchObject({ event: "a\\", distinct_id: '"' });
});

test("import pads a small body so that its repetition is recognised", async () => {
  const { bodies } = await bodiesOf([line({ uuid })]);
  expect(bodies[0]!.length + 1_024).toBeGreaterThan(524_288);
  const many = await bodiesOf([line({ uuid }).repeat(600)]);
  expect(many.bodies[0]).toMatch(/\]\}$/);
});

describe("the uuid of an imported line without a uuid", () => {
  const text = line({ n: 1 }) + line({ n: 2 }) + line({ n: 2 }) + line({ n: 3 });

  test("is the same at each import", async () => {
    const once = await uuidsOf(text);
    expect(await uuidsOf(text)).toEqual(once);
    expect(await uuidsOf(text, { limits: { bytesMax: 150, linesMax: 2 } })).toEqual(once);
    const { bodies } = await bodiesOf([...text]);
    expect(
      (JSON.parse(bodies[0]!) as { batch: { uuid: string }[] }).batch.map((e) => e.uuid),
    ).toEqual(once);
  });

  test("is different for two equal lines", async () => {
    const uuids = await uuidsOf(text);
    expect(new Set(uuids).size).toBe(4);
    for (const one of uuids)
      expect(one).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  });

  test("changes only if a line is added before the line", async () => {
    const uuids = await uuidsOf(text);
    expect((await uuidsOf(text + line())).slice(0, 4)).toEqual(uuids);
    const others = await uuidsOf(line({ n: 0 }) + text);
    expect(others.slice(1).some((one) => uuids.includes(one))).toBe(false);
  });

  test.each([
    ["empty", { uuid: "" }],
    ["null", { uuid: null }],
    ["only in properties", { properties: { uuid } }],
  ])("is derived from the line if the line's own uuid is %s", async (_, members) => {
    expect((await uuidsOf(line(members)))[0]).toMatch(/^[\da-f]{8}-[\da-f]{4}-8/);
  });

  test("replaces an invalid uuid, with a note in the report", async () => {
    const { notes } = await bodiesOf([line({ uuid: "17" })]);
    expect(notes).toMatchObject([{ line: 1, code: "invalid_uuid", isStored: true }]);
    expect((await uuidsOf(line({ uuid: "17" })))[0]).toMatch(/^[\da-f]{8}-[\da-f]{4}-8/);
  });

  test("is derived from the source's event id", async () => {
    const call = JSON.stringify({ type: "track", event: "a", userId: "u", messageId: "m-1" });
    const [one, two] = await uuidsOf(`${call}\n${call}\n`);
    const [other] = await uuidsOf(`${call.replace("m-1", "m-2")}\n`);
    expect(one).toBe(two);
    expect(other).not.toBe(one);
  });

  test("is the `id` of a PostHog export without a valid `uuid`", async () => {
    const own = { id: uuid, properties: { uuid: "nested", "x uuid": '"uuid"' } };
    expect(await uuidsOf(line(own))).toEqual([uuid]);
    expect(await uuidsOf(line({ ...own, uuid: null }))).toEqual([uuid]);
    const other = "018f0000-0000-7000-8000-000000000002";
    expect(await uuidsOf(line({ ...own, uuid: other }))).toEqual([other]);
  });
});

describe("import", () => {
  interface Numbered {
    readonly uuid: string;
    readonly properties: { readonly n: number };
  }
  const numbered = (n: number): string => line({ properties: { n } });

  test.each([
    ["malformed JSON", '{"event":"x",,}\n', "not_json"],
    ["half a line", '{"event":"x"\n', "not_json"],
    ["a raw carriage return in a string", '{"event":"a\rb","distinct_id":"\\"x\rz"}\n', "not_json"],
    ["JSON that closes the batch", `],"batch":[${line()}`, "not_json"],
    ["a line that is too long", line({ x: "x".repeat(2_000) }), "line_too_long"],
  ])("reports an invalid line and sends all other lines: %s", async (_, bad, code) => {
    const { bodies, lines, notes } = await bodiesOf(
      [`\n${line({ n: 1 })}${bad}${line({ n: 2 })}`],
      {
        lineBytesMax: 1_000,
      },
    );
    expect(notes).toMatchObject([{ line: 3, code, isStored: false }]);
    expect(lines).toEqual([[2, 4]]);
    expect(JSON.parse(bodies[0]!).batch.map((event: { n: number }) => event.n)).toEqual([1, 2]);
  });

  test.each([
    ["with a comma", ","],
    ["with nothing between them", ""],
    ["with blanks between them", " \t "],
    ["with JSON that closes the batch between them", `],"batch":[`],
  ])("sends two objects on one line, %s, as two events", async (_, between) => {
    const two = `${numbered(2).trim()}${between}${numbered(3)}`;
    const { bodies, lines, notes } = await bodiesOf([`${numbered(1)}${two}${numbered(4)}`]);
    const sent = JSON.parse(bodies[0]!).batch as Numbered[];
    const isBroken = between.startsWith("]");
    expect(sent.map(({ properties: { n } }) => n)).toEqual(isBroken ? [1, 2, 4] : [1, 2, 3, 4]);
    expect(lines).toEqual([isBroken ? [1, 2, 3] : [1, 2, 2, 3]]);
    expect(notes).toMatchObject(isBroken ? [{ line: 2, code: "not_json", isStored: false }] : []);
    expect(new Set(sent.map(({ uuid }) => uuid)).size).toBe(sent.length);
  });

  test("writes one note for an array of events with invalid uuids", async () => {
    const array = ["x", "y", "z"].map((wrong) => line({ uuid: wrong }).trim()).join(",");
    const { lines, notes } = await bodiesOf([`[${array}]\n`]);
    expect(lines).toEqual([[1, 1, 1]]);
    expect(notes).toMatchObject([{ line: 1, code: "invalid_uuid", isStored: true }]);
  });

  test("sends each event of an array on a line", async () => {
    const array = `[${numbered(2).trim()},7,${numbered(3).trim()}]\n`;
    const { bodies, lines, notes } = await bodiesOf([`${numbered(1)}${array}${numbered(4)}`]);
    const sent = JSON.parse(bodies[0]!).batch as Numbered[];
    expect(sent.map(({ properties: { n } }) => n)).toEqual([1, 2, 3, 4]);
    expect(lines).toEqual([[1, 2, 2, 3]]);
    expect(notes).toMatchObject([{ line: 2, code: "not_an_object", isStored: false }]);
  });

  const deep = `${"[".repeat(6_000)}${"]".repeat(6_000)}`;
  const track = (n: unknown) => JSON.stringify({ type: "track", event: "e", userId: "u", n });
  const text = JSON.stringify(`{"a":${deep}}`);
  const long = "12345678901234567890";

  test.each([
    ["segment", "nested too deeply", track(1).replace('"n":1', `"properties":{"n":${deep}}`)],
    ["segment", "of another type", track(long).replace('"track"', long)],
    ["segment", "of another type", track(long).replace('"track"', '{"toString":1}')],
    ["mixpanel", "nested too deeply", `{"event":"e","properties":{"time":1,"n":${deep}}}`],
    [
      "amplitude",
      "nested too deeply",
      `{"event_type":"e","user_id":"u","event_properties":{"n":${deep}}}`,
    ],
    [
      "posthog",
      "nested too deeply in text",
      `{"event":"e","distinct_id":"u","properties":${text}}`,
    ],
    [
      "segment",
      "nested too deeply, with a long number",
      `{"type":"track","n":${long},"a":${deep}}`,
    ],
    ["segment", "a number", long],
  ])("reports a line in the format %s: the line is %s", async (name, _, bad) => {
    const format = formatNamed(name);
    const good = `${JSON.stringify({ type: "track", event: "e", userId: "u", time: 1, event_type: "e", distinct_id: "u", properties: { time: 1 } })}\n`;
    const { lines, notes } = await bodiesOf([`${good}${bad}\n${good}`], { format });
    expect(notes.filter(({ isStored }) => !isStored)).toMatchObject([{ line: 2 }]);
    expect(lines).toEqual([[1, 3]]);
  });

  test("reports and replaces bytes that are not UTF-8", async () => {
    const text = Buffer.concat([
      Buffer.from(line({ properties: { n: "?" } }).replace("?", "\u00e9"), "latin1"),
      Buffer.from(line()),
    ]);
    const { bodies, notes } = await bodiesOf([text]);
    expect(notes).toMatchObject([{ line: 1, code: "invalid_utf8", isStored: true }]);
    expect(JSON.parse(bodies[0]!).batch[0].properties.n).toBe("\ufffd");
  });

  test.each(["posthog", "mixpanel", "segment", "amplitude"])(
    "reports NaN and Infinity and stores them as null: %s",
    async (name) => {
      const event = { type: "track", event: "e", userId: "u", time: 1, event_type: "e" };
      const properties = { time: 1, n: 0 };
      const text = JSON.stringify({ ...event, distinct_id: "u", user_id: "u", properties });
      const bad = text.replace('"n":0', '"n":[NaN,-Infinity,"NaN"]');
      const { bodies, notes } = await bodiesOf([`${text}\n${bad}\n${text}\n`], {
        format: formatNamed(name),
      });
      expect(notes.filter(({ code }) => code === "non_finite_number")).toMatchObject([{ line: 2 }]);
      expect(JSON.parse(bodies[0]!).batch).toHaveLength(3);
      expect(bodies[0]).not.toMatch(/[^"]NaN/);
    },
  );

  test("reports nothing for a byte order mark and blank lines", async () => {
    const { lines, notes } = await bodiesOf([`\ufeff${line()}\n  \n${line().trim()}`]);
    expect([lines, notes]).toEqual([[[1, 4]], []]);
  });
});

describe("a resumed import", () => {
  const text = [1, 2, 3, 4, 5, 6].map((n) => line({ n })).join("\n");
  const limits = { bytesMax: 1e6, linesMax: 2 };

  test.each([0, 1, 2])(
    "sends the same bodies as an uninterrupted import after batch %i",
    async (index) => {
      const whole = await bodiesOf([text], { limits });
      expect(whole.bodies.length).toBe(3);
      const rest = await bodiesOf([text], { limits, done: whole.done[index] });
      expect(rest.bodies).toEqual(whole.bodies.slice(index + 1));
      expect(rest.lines).toEqual(whole.lines.slice(index + 1));
    },
  );

  test("sends only the lines that were added to the file", async () => {
    const { done } = await bodiesOf([text]);
    const { bodies } = await bodiesOf([`${text}${line({ n: 7 })}`], { done: done[0] });
    expect(bodies.map((body) => JSON.parse(body).batch[0].n)).toEqual([7]);
  });

  test.each([
    ["a changed line", text.replace('"n":2', '"n":9')],
    ["fewer lines", text.slice(0, 200)],
  ])("rejects a file with %s", async (_, other) => {
    const { done } = await bodiesOf([text]);
    await expect(bodiesOf([other], { done: done.at(-1) })).rejects.toThrow(
      /not the file.*--restart/,
    );
  });
});

test("import skips a byte order mark at the start of each joined file", async () => {
  const mark = "\ufeff";
  const sent = await sentOf(`${mark}${line({ uuid })}${mark}${line({ uuid })}`);
  expect(sent.length).toBe(2);
});
