import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "../../kit/code-points.ts";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: codePoint }),
  fc.constantFrom("", " ", "$pageview", "$identify", "a\nb", "\u2028"),
);
const members = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom("distinct_id", "alias", "$survey_id")),
  fc.jsonValue(),
  { maxKeys: 6 },
);
const properties = fc
  .tuple(members, fc.option(members))
  .map(([others, once]) => (once === null ? others : { ...others, $set_once: once }));
const item = fc.record(
  {
    event: text,
    distinct_id: fc.oneof(text, fc.integer(), fc.boolean()),
    properties,
    $set: members,
    uuid: fc.uuid(),
    extra: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

interface Item {
  event?: string;
  distinct_id?: unknown;
  properties?: Record<string, unknown>;
  $set?: unknown;
  uuid?: string;
}

function naive(sent: Item): Record<string, unknown> | undefined {
  if (typeof sent.event !== "string" || sent.event.trim() === "") return undefined;
  const id = sent.distinct_id ?? sent.properties?.["distinct_id"] ?? undefined;
  if (id === undefined) return undefined;
  const idText = typeof id === "string" ? id : JSON.stringify(id);
  if (idText.trim() === "") return undefined;
  const once = sent.properties?.["$set_once"];
  return {
    event: storable(sent.event),
    distinct_id: shortened(storable(idText)),
    properties: wellFormed(sent.properties ?? {}),
    ...(sent.$set === undefined ? {} : { $set: wellFormed(sent.$set) }),
    ...(once === undefined ? {} : { $set_once: wellFormed(once) }),
    ...(sent.uuid === undefined ? {} : { uuid: sent.uuid }),
  };
}

function shortened(id: string): string {
  const characters = [...id];
  if (characters.length <= 400) return id;
  const hash = createHash("sha256").update(id).digest("base64url");
  return `${characters.slice(0, 356).join("")}~${hash}`;
}

function wellFormed(value: unknown): unknown {
  const clean = JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "string" ? storable(inner) : inner,
  );
  return JSON.parse(
    clean.replace(/(?<!\\)((?:\\\\)*)\\u(?:d[89a-f][0-9a-f]{2}|0000)/g, "$1\ufffd"),
  );
}

function storable(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}

test("random batches are stored as JSON.parse predicts", async () => {
  const project = await gateway.project();
  const expected: Record<string, unknown>[] = [];
  await fc.assert(
    fc.asyncProperty(
      fc.array(item, { maxLength: 12 }),
      fc.constantFrom(undefined, 1),
      async (batch, indent) => {
        const body = JSON.stringify({ batch, token: project.key }, undefined, indent);
        const kept = (JSON.parse(body) as { batch: Item[] }).batch
          .map(naive)
          .filter((record) => record !== undefined);
        const answer = await gateway.post("/batch/", body);
        expect(answer.json).toMatchObject({
          status: "Ok",
          accepted: kept.length,
          dropped: batch.length - kept.length,
        });
        expected.push(...kept);
      },
    ),
    { numRuns: 150 },
  );
  const stored = await gateway.events(project);
  expect(stored).toHaveLength(expected.length);
  for (const [index, record] of stored.entries()) {
    const fields = Object.fromEntries(
      Object.keys(expected[index] ?? {}).map((field) => [field, record[field]]),
    );
    expect(fields).toEqual(expected[index]);
  }
});
