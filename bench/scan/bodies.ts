// The bodies for the scanner benchmark. Each stresses a different task of a JSON parser.

import { batchBody, event, hugeBatchEvents, singleBody } from "../harness/bodies.ts";

const shapeBytes = 1_000_000;

function batchOf(item: (index: number) => unknown): Buffer {
  const each = JSON.stringify(item(0)).length;
  const batch = Array.from({ length: Math.ceil(shapeBytes / each) }, (_, index) => item(index));
  return Buffer.from(JSON.stringify({ api_key: "phc_bench_0", batch }));
}

function withProperties(index: number, properties: unknown): unknown {
  return { ...event(index), properties };
}

function wide(index: number): unknown {
  const names = Array.from({ length: 500 }, (_, place) => [
    `property_${place}`,
    place % 3 === 0 ? `value ${index}` : place,
  ]);
  return withProperties(index, Object.fromEntries(names));
}

function deep(index: number): unknown {
  let value: unknown = { leaf: index };
  for (let level = 0; level < 200; level++) value = level % 2 === 0 ? { next: value } : [value];
  return withProperties(index, { deep: value });
}

function unicode(index: number): unknown {
  return withProperties(index, {
    title: "日本語のページの題名と説明 — Überschrift, τίτλος, заголовок",
    emoji: "👩‍🚀🎉🧵".repeat(8),
    escaped: `line one\nline "two"\t\\ three ${index}`,
  });
}

function numbers(index: number): unknown {
  const series = Array.from(
    { length: 200 },
    (_, place) => Math.sin(index + place) * 10 ** (place % 12),
  );
  return withProperties(index, { series, counts: series.map(Math.trunc) });
}

export const scanBodies: Readonly<Record<string, () => Buffer>> = {
  "one event": () => singleBody(0),
  "18 MB batch": () => batchBody(hugeBatchEvents),
  wide: () => batchOf(wide),
  deep: () => batchOf(deep),
  unicode: () => batchOf(unicode),
  numbers: () => batchOf(numbers),
};
