import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { forms, queryForms, type Sent } from "../../kit/payload-forms.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

const uuids = new Set<string>();

async function send({
  line = "POST /e/",
  headers = {},
  body,
}: Sent): Promise<{ status: number; json: unknown }> {
  const [method = "POST", path = "/"] = line.split(" ");
  const response = await fetch(gateway.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, json: await response.json() };
}

function pageviews(count: number): object[] {
  return Array.from({ length: count }, (_, n) => {
    const uuid = `0190f5c0-7b3a-7000-8000-${String(uuids.size).padStart(12, "0")}`;
    uuids.add(uuid);
    const properties = {
      token: project.key,
      distinct_id: "ü😀+&=%41",
      $current_url: "https://shop.example/?a=b+c",
      n,
    };
    return { uuid, event: "$pageview", properties, offset: 5 };
  });
}

const cases = [
  ...forms,
  ...queryForms.map(([name, sent]) => [`in the query: ${name}`, sent] as const),
];

describe("a payload of PostHog's clients", () => {
  test.each(cases)("is stored: %s", async (_name, sent) => {
    const events = pageviews(2);
    expect(await send(sent(JSON.stringify(events)))).toMatchObject({
      status: 200,
      json: { accepted: 2, dropped: 0 },
    });
  });

  test("is stored once and unchanged", async () => {
    const stored = await gateway.events(project);
    expect(new Set(stored.map(({ uuid }) => uuid))).toEqual(uuids);
    expect(stored.length).toBe(uuids.size);
    for (const { event, distinct_id, properties } of stored) {
      expect([event, distinct_id, properties["$current_url"]]).toEqual([
        "$pageview",
        "ü😀+&=%41",
        "https://shop.example/?a=b+c",
      ]);
    }
  });

  test("of 20,000 events in gzip is stored completely", async () => {
    const own = await gateway.project();
    const events = Array.from({ length: 20_000 }, (_, n) => ({
      event: "e",
      properties: { token: own.key, distinct_id: `u${n}` },
    }));
    const body = gzipSync(JSON.stringify(events));
    const response = await fetch(`${gateway.url}/e/?compression=gzip-js&_=${Date.now()}`, {
      method: "POST",
      body,
    });
    expect(await response.json()).toMatchObject({ accepted: 20_000 });
    expect((await gateway.events(own)).length).toBe(20_000);
    const again = await fetch(`${gateway.url}/e/?compression=gzip-js`, {
      method: "POST",
      body: body.subarray(0, -100),
    });
    expect(again.status).toBe(400);
    expect((await gateway.events(own)).length).toBe(20_000);
  });
});
