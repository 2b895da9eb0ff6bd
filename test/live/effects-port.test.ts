import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StreamStatus } from "../../src/readers/effects/streams/lag.ts";
import { startTestGateway, type TestGateway, until } from "../kit/gateway.ts";
import { ada, effectsHttp, readerOf } from "../readers/effects/http/reader-kit.ts";
import { watch } from "./live-kit.ts";

interface State {
  readonly effects?: {
    readonly state: string;
    readonly totals?: { readonly persons: number };
    readonly reasons: readonly string[];
    readonly usage: readonly object[];
  };
}

const stream: StreamStatus = {
  stream: "PENSTOCK_LIVE_0",
  lane: "live",
  partition: 0,
  epoch: 1,
  sequence: 3,
  lastSequence: 8,
  lagSeconds: 1.5,
};
const reader = readerOf({
  totals: async () => ({ persons: 7, groups: 2, openSpikes: 1, rejected: 0, incidents: 0 }),
  usage: async (_, { from: day }) => [
    { day, lane: "live", class: "identified", events: 5, duplicates: 1 },
    { day, lane: "historical", class: "identified", events: 9, duplicates: 2 },
  ],
  personByDistinctId: async (project, id) =>
    project === "shop" && id === "a&b=ü" ? ada : undefined,
});
const status = async () => ({ state: "applying", reasons: [], streams: [stream] });

async function gatewayBeside(port: string, env = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ env: { PENSTOCK_EFFECTS_PORT: port, ...env } });
  onTestFinished(() => gateway.stop());
  return gateway;
}

async function effectsPort(): Promise<string> {
  return new URL(await effectsHttp(reader, { status })).port;
}

async function silentPort(): Promise<string> {
  const silent = createServer((socket) => onTestFinished(() => void socket.destroy()));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void silent.close());
  return String((silent.address() as AddressInfo).port);
}

const personPath = `/live/person?project=shop&distinct_id=${encodeURIComponent("a&b=ü")}`;

function get(
  gateway: TestGateway,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(gateway.adminUrl + path, { headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject).end();
  });
}

describe("the live page of a gateway with effects", () => {
  test("shows the totals and the lag of the effects", async () => {
    const gateway = await gatewayBeside(await effectsPort());
    const viewer = await watch(gateway.adminUrl, { path: "/live?project=shop" });
    await until(() => viewer.said<State>("state").at(-1)?.effects?.usage.length === 1);
    expect(viewer.said<State>("state").at(-1)?.effects).toEqual({
      state: "applying",
      reasons: [],
      lagSeconds: 1.5,
      lagMessages: 5,
      totals: { persons: 7, groups: 2, open_spikes: 1, rejected: 0, incidents: 0 },
      usage: [{ project: "shop", billable: 5, historical: 9, duplicates: 3 }],
    });
  });

  test("reports an unavailable database, without totals", async () => {
    const gateway = await gatewayBeside(new URL(await effectsHttp(undefined)).port);
    const viewer = await watch(gateway.adminUrl);
    await until(() => viewer.said<State>("state").at(-1)?.effects !== undefined);
    const { effects } = viewer.said<State>("state").at(-1)!;
    expect(effects?.totals).toBeUndefined();
    expect(effects?.reasons).toHaveLength(1);
  });

  test("still shows the totals if the usage cannot be read", async () => {
    let asked = 0;
    const usage = async (): Promise<never> => {
      asked++;
      throw new Error("the database is busy");
    };
    const failing = readerOf({ totals: reader.totals, usage });
    const gateway = await gatewayBeside(new URL(await effectsHttp(failing, { status })).port);
    const viewer = await watch(gateway.adminUrl, { path: "/live?project=shop" });
    // Snapshots from before the project was watched do not contain its usage.
    await until(() => asked > 1);
    const before = viewer.said<State>("state").length;
    await until(() => viewer.said<State>("state").length > before + 1);
    expect(viewer.said<State>("state").at(-1)?.effects).toMatchObject({
      state: "applying",
      usage: [],
      totals: { persons: 7 },
    });
  });

  test("is updated without delay if the effects do not respond", async () => {
    const gateway = await gatewayBeside(await silentPort());
    const viewer = await watch(gateway.adminUrl);
    await until(() => viewer.said<State>("state").length > 2);
    await until(() => viewer.said<State>("state").at(-1)?.effects !== undefined);
    expect(viewer.said<State>("state").at(-1)?.effects).toMatchObject({
      state: "not responding",
      reasons: ["no response within 0.9 s"],
      usage: [],
      lagSeconds: null,
    });
    expect((await get(gateway, personPath)).status).toBe(503);
  });
});

describe("a person on the live page", () => {
  test("is returned with all digits of its numbers", async () => {
    const gateway = await gatewayBeside(await effectsPort());
    const found = await get(gateway, personPath);
    expect(found.status).toBe(200);
    expect(JSON.parse(found.text)).toMatchObject({ uuid: ada.uuid, known: true });
    expect(found.text).toContain(ada.propertiesJson);
    expect((await get(gateway, "/live/person?project=shop&distinct_id=unknown")).status).toBe(404);
    for (const path of ["?distinct_id=x", "?project=a/b&distinct_id=x", "?project=shop"])
      expect((await get(gateway, `/live/person${path}`)).status).toBe(400);
    const long = "x".repeat(1_001);
    expect((await get(gateway, `/live/person?project=shop&distinct_id=${long}`)).status).toBe(400);
  });

  test.each([
    { Host: "evil.example:9464" },
    { "Sec-Fetch-Site": "cross-site" },
    { Origin: "http://evil.example" },
  ])("is not returned to a cross-site request: %o", async (headers) => {
    const gateway = await gatewayBeside(await effectsPort());
    const refused = await get(gateway, personPath, headers as Record<string, string>);
    expect(refused.status).toBe(403);
    expect(refused.text).not.toContain(ada.uuid);
  });

  test("is not returned if events are hidden", async () => {
    const gateway = await gatewayBeside(await effectsPort(), { PENSTOCK_LIVE_EVENTS: "false" });
    expect((await get(gateway, personPath)).status).toBe(403);
  });
});
