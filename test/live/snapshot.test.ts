import { request } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { startTestGateway, until } from "../kit/gateway.ts";
import { watch } from "./live-kit.ts";

interface State {
  readonly ready: number;
  readonly workers: number;
  readonly reasons: readonly string[];
  readonly publicPort: number;
  readonly showsEvents: boolean;
  readonly store: {
    connected: boolean;
    version: string;
    streams: { name: string; messages: number; bytesMax: number }[];
  };
  readonly counts: {
    answers: Record<string, number>;
    problems: Record<string, number>;
    events: { outcome: string; reason: string; count: number }[];
  };
}

interface ClientWarning {
  readonly projectId: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly events: number;
  readonly path: string;
  readonly client: string;
  readonly times: number;
}

describe("the state on the live page", () => {
  test("contains counts, warnings, the store and readiness", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const { id, key } = await gateway.project();
    const viewer = await watch(gateway.adminUrl);
    const batch = [
      { event: "good", distinct_id: "u" },
      { distinct_id: "no name" },
      { event: "sent", distinct_id: "secret of the client", properties: 1 },
    ];
    expect((await gateway.post("/batch/", { api_key: key, batch })).status).toBe(200);
    expect(
      (
        await gateway.post("/capture/", {
          api_key: key,
          event: "e",
          distinct_id: "u",
          properties: JSON.parse(`${"[".repeat(101)}${"]".repeat(101)}`),
        })
      ).status,
    ).toBe(400);
    expect((await gateway.post("/capture/", { api_key: "phc_not_a_key", event: "e" })).status).toBe(
      401,
    );
    expect((await gateway.post("/capture/", "{")).status).toBe(400);

    const isWhole = ({ counts, store }: State) =>
      counts.problems["invalid_json"] === 1 &&
      store.connected &&
      store.streams.length === 3 &&
      store.streams.some(({ name, messages }) => name === "PENSTOCK_LIVE_0" && messages === 1);
    await until(() => viewer.said<State>("state").some(isWhole));
    const said = viewer.said<State>("state").find(isWhole)!;
    expect(said).toMatchObject({
      ready: 1,
      workers: 1,
      reasons: [],
      publicPort: gateway.port,
      showsEvents: true,
    });
    expect(said.store).toMatchObject({
      version: expect.stringMatching(/^2\./),
      streams: [{}, {}, {}],
    });
    expect(said.counts.problems).toMatchObject({
      too_deep: 1,
      // The gateway may answer 401 while the test waits for the project's key.
      unknown_api_key: expect.any(Number),
      invalid_json: 1,
    });
    expect(said.counts.events).toContainEqual({ outcome: "dropped", reason: "no_event", count: 1 });
    expect(said.counts.events).toContainEqual({ outcome: "stored", reason: "none", count: 1 });

    await until(() => viewer.said<ClientWarning[]>("clientWarnings").at(-1)?.length === 5);
    const clientWarnings = viewer.said<ClientWarning[]>("clientWarnings").at(-1)!;
    expect(
      clientWarnings.map(({ projectId, status, code, events }) => [
        projectId,
        status,
        code,
        events,
      ]),
    ).toEqual([
      [id, 200, "no_event", 1],
      [id, 200, "invalid_properties", 1],
      [id, 400, "too_deep", 0],
      ["", 401, "unknown_api_key", 0],
      ["", 400, "invalid_json", 0],
    ]);
    const everything = JSON.stringify([viewer.said("state"), viewer.said("clientWarnings")]);
    expect(everything).not.toMatch(/phc_not_a_key|secret of the client/);
    expect(everything).not.toContain(key);
  });

  test("counts dropped events after a 503 only if a retry succeeds", async () => {
    const gateway = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "300", PENSTOCK_ACK_TIMEOUT_MS: "100" },
    });
    onTestFinished(() => gateway.stop());
    const { key } = await gateway.project();
    const viewer = await watch(gateway.adminUrl);
    const batch = [{ event: "good", distinct_id: "u" }, { distinct_id: "no name" }];
    const send = () => gateway.post("/batch/", { api_key: key, batch });
    const clientWarnings = () => viewer.said<ClientWarning[]>("clientWarnings").at(-1) ?? [];
    gateway.nats.freeze();
    expect(await send()).toMatchObject({ status: 503, json: { code: "timeout" } });
    await until(() => clientWarnings().some(({ status }) => status === 503));
    expect(clientWarnings().filter(({ status }) => status === 200)).toEqual([]);
    expect(await gateway.metrics()).toMatch(
      /penstock_events_total\{[^}]*reason="no_event"[^}]*\} 0$/m,
    );
    gateway.nats.thaw();
    await until(async () => (await send()).status === 200);
    await until(() => clientWarnings().some(({ status }) => status === 200));
    expect(clientWarnings().filter(({ status }) => status === 200)).toMatchObject([
      { code: "no_event", times: 1, events: 1 },
    ]);
    expect(await gateway.metrics()).toMatch(
      /penstock_events_total\{[^}]*reason="no_event"[^}]*\} 1$/m,
    );
  });

  test("shows a loss of the store and its recovery", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const viewer = await watch(gateway.adminUrl);
    const state = () => viewer.said<State>("state").at(-1);
    await until(() => state()?.store.connected === true && state()?.ready === 1);
    await gateway.nats.kill();
    await until(
      () =>
        state()?.store.connected === false && state()?.ready === 0 && state()?.reasons.length !== 0,
    );
    await gateway.nats.restart();
    await until(() => state()?.store.connected === true && state()?.ready === 1);
  });

  test("contains the path and the SDK of each warning", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const { id, key } = await gateway.project();
    const viewer = await watch(gateway.adminUrl);
    const node = "posthog-node/5.9.1";
    const browser =
      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
    const ofWeb = {
      $lib: "web",
      $lib_version: "1.449.0",
      $current_url: "https://shop.example/secret",
    };
    const send = (path: string, body: object | string, agent: string) =>
      alone(gateway.port, path, {
        body: typeof body === "string" ? body : JSON.stringify(body),
        agent,
      });
    for (let time = 0; time < 3; time++) {
      await send("/capture/", { api_key: key, distinct_id: "u", properties: ofWeb }, browser);
    }
    await send(
      "/batch/",
      { api_key: "phc_not_a_key", batch: [{ event: "e", properties: ofWeb }] },
      node,
    );
    await send("/batch/", "{", node);
    await send("/batch/", "{", browser);
    await send("/captur?secret", "{}", "x".repeat(1_000));
    await until(() => viewer.said<ClientWarning[]>("clientWarnings").at(-1)?.length === 5);
    const clientWarnings = viewer.said<ClientWarning[]>("clientWarnings").at(-1)!;
    expect(
      clientWarnings.map(({ projectId, code, path, client, times, events }) => [
        projectId,
        code,
        path,
        client,
        times,
        events,
      ]),
    ).toEqual([
      [id, "no_event", "/capture/", "posthog-js 1.449.0", 3, 3],
      ["", "unknown_api_key", "/batch/", "posthog-js 1.449.0", 1, 0],
      ["", "invalid_json", "/batch/", "posthog-node 5.9.1", 1, 0],
      ["", "invalid_json", "/batch/", "Chrome 141", 1, 0],
      ["", "not_found", "/captur", "x".repeat(32), 1, 0],
    ]);
    expect(JSON.stringify(clientWarnings)).not.toContain("secret");
  });

  test("contains each requested path without its keys", async () => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const viewer = await watch(gateway.adminUrl);
    const agent = "reqwest/0.12";
    const send = (path: string, own: Record<string, string> = {}, method = "POST") =>
      alone(gateway.port, path, { body: "{", agent, own, method });
    const asked: [path: string, shown: string][] = [
      ["/batch", "/batch"],
      ["/i/v0/e/?ip=0", "/i/v0/e/"],
      ["/i/v0/ai/batch", "/i/v0/ai/batch"],
      ["/i/v0/ai/batch/", "/i/v0/ai/batch/"],
      ["/x_phc_secretkey123/y-phc_ab-cdefghijk", "/x_<key>/y-<key>"],
    ];
    for (const [path] of asked) await send(path);
    const refused: [path: string, shown: string][] = [
      ["/s/", "/s/"],
      ["/robots.txt", "/robots.txt"],
      ["/array/secretkey/config", "/array/<key>/config"],
      ["/static/none.js", "/static/none.js"],
    ];
    for (const [path] of refused) await send(path, {}, "DELETE");
    const v1 = "/i/v1/analytics/events";
    const sdks: [info: string, shown: string][] = [
      ["posthog-rs/0.30.0", "posthog-rs 0.30.0"],
      ["posthog node/server/1.2.3-rc.1", "posthog node/server 1.2.3-rc.1"],
      ["x-phc_secretkey123/1", "a key"],
      ["posthog/phx_secretkey", "a key"],
      ["\u00e9", "reqwest 0.12"],
      ["", "reqwest 0.12"],
    ];
    for (const [info] of sdks) await send(v1, info === "" ? {} : { "PostHog-Sdk-Info": info });
    const paths = [...asked, ...refused].map(([, shown]) => [shown, "reqwest 0.12"]);
    const clients = [...new Set(sdks.map(([, shown]) => shown))].map((shown) => [v1, shown]);
    await until(
      () =>
        viewer.said<ClientWarning[]>("clientWarnings").at(-1)?.length ===
        paths.length + clients.length,
    );
    const clientWarnings = viewer.said<ClientWarning[]>("clientWarnings").at(-1)!;
    expect(clientWarnings.map(({ path, client }) => [path, client]).sort()).toEqual(
      [...paths, ...clients].sort(),
    );
    expect(JSON.stringify(clientWarnings)).not.toMatch(/secretkey|cdefghijk/);
  });
});

interface Sent {
  readonly body: string;
  readonly agent: string;
  readonly own?: Readonly<Record<string, string>>;
  readonly method?: string;
}

/** The User-Agent is read once per connection, so each request has a new connection. */
async function alone(
  port: number,
  path: string,
  { body, agent, own = {}, method = "POST" }: Sent,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const headers = { "user-agent": agent, "content-length": Buffer.byteLength(body), ...own };
    const sent = request(
      { host: "127.0.0.1", port, path, method, headers, agent: false },
      (response) => {
        response.resume().on("end", resolve);
      },
    );
    sent.on("error", reject).end(body);
  });
}
