import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  bodyBytesMax,
  codeIn,
  connectTo,
  head,
  type Reply,
  startTestServer,
  type TestServer,
} from "../../kit/http-server.ts";

const origin = "https://shop.example";

async function ask(
  server: TestServer,
  line: string,
  sent: string | Uint8Array = "",
  own = {},
): Promise<Reply> {
  const wire = await connectTo(server);
  const length = sent.length > 0 ? { "Content-Length": String(Buffer.byteLength(sent)) } : {};
  wire.write(Buffer.concat([head({ ...length, ...own }, line), Buffer.from(sent)]));
  return wire.reply(line.startsWith("HEAD"));
}

const none = {
  errorsWhileComputingFlags: false,
  requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
};

describe("SDK requests other than events", () => {
  test.each([
    ["/flags", { featureFlags: {}, featureFlagPayloads: {} }],
    ["/flags/", { featureFlags: {}, featureFlagPayloads: {} }],
    ["/flags/?v=1", { featureFlags: {}, featureFlagPayloads: {} }],
    ["/flags/?v=2", { flags: {} }],
    ["/flags/?v=2&ip=0&_=1700000000000&ver=1.449.0&compression=base64", { flags: {} }],
    ["/flags/?v=99", { flags: {} }],
    ["/flags/?v=x", { featureFlags: {}, featureFlagPayloads: {} }],
  ])("POST %s returns no flags, in the format of its version", async (path, form) => {
    const server = await startTestServer();
    const reply = await ask(server, `POST ${path}`, '{"token":"phc_a","distinct_id":"d"}');
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/json"]);
    const answer = JSON.parse(reply.body);
    expect(answer).toEqual({ ...form, ...none, evaluatedAt: expect.any(Number) });
    expect(server.finished).toEqual(["flags 200"]);
  });

  test.each([
    ["/decide/", { featureFlags: [] }],
    ["/decide?v=2", { featureFlags: {} }],
    ["/decide/?v=3", { featureFlags: {}, featureFlagPayloads: {} }],
    ["/decide/?v=4", { flags: {} }],
  ])("%s also returns the state of the other features", async (path, form) => {
    const server = await startTestServer();
    const answer = JSON.parse((await ask(server, `POST ${path}`, "data=e30%3D")).body);
    expect(answer).toMatchObject({
      ...form,
      ...none,
      sessionRecording: false,
      supportedCompression: expect.any(Array),
    });
    // SDKs older than 2023 use these paths.
    expect(answer.config).toEqual({ enable_collect_everything: true });
    expect(answer).not.toHaveProperty("quotaLimited");
  });

  test("/flags also returns the configuration if the query requests it", async () => {
    const server = await startTestServer();
    const answer = JSON.parse((await ask(server, "POST /flags/?v=2&config=true", "{}")).body);
    expect(answer).toMatchObject({
      flags: {},
      autocapture_opt_out: false,
      sessionRecording: false,
    });
  });

  test.each([
    ["JSON", Buffer.from("{}")],
    ["malformed JSON", Buffer.from('{"')],
    ["gzip", gzipSync("{}")],
    ["base64", Buffer.from("e30=")],
    ["no bytes", Buffer.alloc(0)],
    ["arbitrary bytes", Buffer.from([0, 255, 254, 10])],
  ])("a body of %s is ignored", async (_, body) => {
    const server = await startTestServer();
    const headers = { "Content-Encoding": "anything" };
    for (const path of ["/flags/?v=2", "/s/", "/i/v1/logs"]) {
      expect((await ask(server, `POST ${path}`, body, headers)).status).toBe(200);
    }
    expect(server.taken).toEqual([]);
  });

  test("the configuration turns autocapture on and other features off", async () => {
    const server = await startTestServer();
    const reply = await ask(server, "GET /array/phc_abc-1.2/config?ip=0");
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/json"]);
    const config = JSON.parse(reply.body);
    expect(config).toMatchObject({
      token: "phc_abc-1.2",
      autocapture_opt_out: false,
      sessionRecording: false,
      surveys: false,
      heatmaps: false,
      hasFeatureFlags: false,
      capturePerformance: false,
      captureDeadClicks: false,
      autocaptureExceptions: false,
      analytics: { endpoint: "/e/" },
      siteApps: [],
    });
    expect(config.supportedCompression).toContain("gzip-js");
    expect(config).not.toHaveProperty("quotaLimited");
    expect(server.finished).toEqual(["config 200"]);
  });

  test("config.js sets the configuration of the key in its path", async () => {
    const server = await startTestServer();
    const reply = await ask(server, "GET /array/phc_abc/config.js");
    expect([reply.status, reply.headers.get("content-type")]).toEqual([
      200,
      "text/javascript; charset=utf-8",
    ]);
    const window = { _POSTHOG_REMOTE_CONFIG: { other: 1 } as Record<string, unknown> };
    runInNewContext(reply.body, { window });
    const asJson = JSON.parse((await ask(server, "GET /array/phc_abc/config")).body);
    expect(window._POSTHOG_REMOTE_CONFIG["other"]).toBe(1);
    expect(JSON.parse(JSON.stringify(window._POSTHOG_REMOTE_CONFIG["phc_abc"]))).toEqual({
      config: asJson,
      siteApps: [],
    });
  });

  const printable = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join("");

  test.each([
    "a'b",
    "$&(x)+alert(1)",
    "__proto__",
    "constructor",
    "*~!@,=+",
    '"];alert(1)//',
    "</script>",
    "a\\b",
    "%22",
    printable,
    `phc_${"a".repeat(196)}`,
  ])("config.js does not run a key as code: %s", async (key) => {
    const server = await startTestServer();
    const segment = encodeURIComponent(key);
    const reply = await ask(server, `GET /array/${segment}/config.js`);
    const window: { _POSTHOG_REMOTE_CONFIG?: Record<string, { config: { token: string } }> } = {};
    runInNewContext(reply.body, { window, alert: () => expect.unreachable() });
    expect(window._POSTHOG_REMOTE_CONFIG?.[key]?.config.token).toBe(key);
    expect(reply.body).not.toContain("</script>");
    for (const end of ["config", "config/", "config?ip=0"]) {
      expect(JSON.parse((await ask(server, `GET /array/${segment}/${end}`)).body).token).toBe(key);
    }
    expect((await ask(server, `GET /array/${segment}/config.js/`)).body).toBe(reply.body);
  });

  test.each([
    '"];alert(1)//',
    "</script>",
    "a\\b",
    "a<b",
    "`",
    "a/b",
    "",
    "a".repeat(201),
    "\u00e9",
    "%c3%a9",
    "a%20b",
    "a%00",
    "%0a",
    "%7F",
    "%E9",
    "a%2",
  ])("a path with an invalid key is answered 404: %s", async (key) => {
    const server = await startTestServer();
    for (const name of ["config", "config.js", "array.js"]) {
      const reply = await ask(server, `GET /array/${key}/${name}`);
      expect([reply.status, codeIn(reply)]).toEqual([404, "not_found"]);
      expect(reply.body).not.toContain("alert(1)//\n");
    }
  });

  test.each([
    [
      "/flags/definitions?token=phc_a&send_cohorts",
      { flags: [], group_type_mapping: {}, cohorts: {} },
    ],
    [
      "/api/feature_flag/local_evaluation/?token=phc_a",
      { flags: [], group_type_mapping: {}, cohorts: {} },
    ],
    ["/api/feature_flag/?token=phc_a", { count: 0, next: null, previous: null, results: [] }],
    ["/api/projects/12/feature_flags/", { count: 0, next: null, previous: null, results: [] }],
    ["/api/surveys/?token=phc_a", { surveys: [], survey_config: null }],
    ["/api/early_access_features/?token=phc_a", { earlyAccessFeatures: [] }],
    ["/api/web_experiments/?token=phc_a", { experiments: [] }],
    ["/api/product_tours/?token=phc_a", { product_tours: [] }],
    ["/api/projects/@current/feature_flags/my-flag/remote_config?token=phc_a", null],
    ["/api/projects/12/feature_flags/my%20flag/remote_config/", null],
  ])("GET %s returns an empty result", async (path, answer) => {
    const server = await startTestServer();
    const reply = await ask(server, `GET ${path}`, "", { Authorization: "Bearer phx_secret" });
    expect([reply.status, JSON.parse(reply.body)]).toEqual([200, answer]);
    expect(server.finished).toEqual(["features 200"]);
  });

  test.each([
    ["/s", "recordings"],
    ["/s/?ip=0&_=1&ver=1&compression=gzip-js", "recordings"],
    ["/i/v1/logs?token=phc_a", "logs"],
    ["/i/v1/traces/", "logs"],
    ["/i/v1/metrics", "logs"],
    ["/i/v0/ai/otel/v1/logs", "logs"],
    ["/report/?token=phc_a", "logs"],
  ])("a body sent to %s is discarded and counted", async (path, label) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    const piece = Buffer.alloc(10_000, "x");
    wire.write(head({ "Content-Length": "30000", Origin: origin }, `POST ${path}`));
    wire.write(piece);
    wire.write(piece);
    expect(server.finished).toEqual([]);
    wire.write(piece);
    const reply = await wire.reply();
    expect([reply.status, reply.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    expect(typeof JSON.parse(reply.body)).toBe("object");
    wire.write(head({ "Content-Length": "1", Origin: origin }, `POST ${path}`));
    wire.write("x");
    expect((await wire.reply()).status).toBe(200);
    expect([server.taken, server.finished]).toEqual([[], [`${label} 200`, `${label} 200`]]);
  });

  test("a beacon with a recording is answered without a body", async () => {
    const server = await startTestServer();
    const reply = await ask(server, "POST /s/?beacon=1", "x", { Origin: origin });
    expect([reply.status, reply.body, reply.headers.get("access-control-allow-origin")]).toEqual([
      204,
      "",
      origin,
    ]);
  });

  test("a recording above the size limit is rejected", async () => {
    const server = await startTestServer();
    const declared = await ask(server, "POST /s/", Buffer.alloc(bodyBytesMax + 1));
    expect([declared.status, codeIn(declared)]).toEqual([413, "body_too_large"]);
    const chunk = Buffer.concat([
      Buffer.from(`${(10_000).toString(16)}\r\n`),
      Buffer.alloc(10_000),
      Buffer.from("\r\n"),
    ]);
    const wire = await connectTo(server);
    wire.write(head({ "Transfer-Encoding": "chunked" }, "POST /flags/"));
    for (let sent = 0; sent <= 10; sent++) wire.write(chunk);
    expect(server.admission.bytes).toBe(0);
    wire.write("0\r\n\r\n");
    expect(codeIn(await wire.reply())).toBe("body_too_large");
    const endless = await connectTo(server);
    endless.write(head({ "Transfer-Encoding": "chunked" }, "POST /s/"));
    for (let sent = 0; sent <= 20; sent++) endless.write(chunk);
    const refused = await endless.reply();
    expect(codeIn(refused)).toBe("body_too_large");
    expect(JSON.parse(refused.body).detail).toMatch(
      /^The body has at least 1[01]\d{4} bytes, more than the maximum of 100000$/,
    );
    await endless.ended();
  });

  test("are answered during a drain and while nothing can be stored", async () => {
    const server = await startTestServer();
    server.refusal = "unavailable";
    const [first, second] = [await connectTo(server), await connectTo(server)];
    first.write(head({}, "GET /array/phc_a/config"));
    expect((await first.reply()).status).toBe(200);
    second.write(head({ "Content-Length": "2" }, "POST /flags/?v=2"));
    const drained = server.http.drain(5_000);
    second.write("{}");
    const reply = await second.reply();
    expect([reply.status, reply.headers.get("connection")]).toEqual([200, "close"]);
    expect(await drained).toBe(0);
  });

  test("a preflight lists the methods of its path", async () => {
    const server = await startTestServer();
    for (const [path, allow] of [
      ["/flags/?v=2", "GET, HEAD, POST, OPTIONS"],
      ["/array/phc_a/config", "GET, HEAD, OPTIONS"],
      ["/static/array.js", "GET, HEAD, OPTIONS"],
      ["/s", "GET, HEAD, POST, OPTIONS"],
      ["/i/v1/logs/", "GET, HEAD, POST, OPTIONS"],
      ["/api/surveys", "GET, HEAD, POST, OPTIONS"],
      ["/", "GET, HEAD, OPTIONS"],
      ["/i/v1/analytics/events", "POST, OPTIONS"],
      ["/e/", "GET, POST, OPTIONS"],
      ["/nothing", "GET, POST, OPTIONS"],
    ]) {
      const reply = await ask(server, `OPTIONS ${path}`, "", { Origin: origin });
      expect([path, reply.status, reply.headers.get("allow")]).toEqual([path, 200, allow]);
    }
    const labels = [
      "flags",
      "config",
      "static",
      "recordings",
      "logs",
      "features",
      "page",
      "v1",
      "e",
      "other",
    ];
    expect(server.finished).toEqual(labels.map((label) => `${label} 200`));
  });

  test("a preflight with invalid framing is rejected", async () => {
    const server = await startTestServer();
    for (const path of ["/e/", "/i/v1/analytics/events", "/flags/", "/nothing"]) {
      const wire = await connectTo(server);
      // The server always reads the first request of a connection completely, so the second request
      // is tested.
      wire.write(Buffer.concat([head({ "Content-Length": "2" }, "POST /s/"), Buffer.from("{}")]));
      expect((await wire.reply()).status).toBe(200);
      wire.write(
        Buffer.concat([
          head({ "Content-Length": "2", host: "elsewhere" }, `OPTIONS ${path}`),
          Buffer.from("{}"),
        ]),
      );
      const reply = await wire.reply();
      expect([path, reply.status, reply.headers.get("connection")]).toEqual([path, 400, "close"]);
      expect(reply.body).toContain("invalid_framing");
      await wire.ended();
    }
  });

  test.each([
    ["DELETE /flags/", "GET, HEAD, POST, OPTIONS"],
    ["PUT /s/", "GET, HEAD, POST, OPTIONS"],
    ["POST /array/phc_a/config", "GET, HEAD, OPTIONS"],
    ["POST /robots.txt", "GET, HEAD, OPTIONS"],
    ["POST /", "GET, HEAD, OPTIONS"],
  ])("%s is answered 405 with the allowed methods", async (line, allow) => {
    const server = await startTestServer();
    const reply = await ask(server, line);
    expect([reply.status, codeIn(reply), reply.headers.get("allow")]).toEqual([
      405,
      "method_not_allowed",
      allow,
    ]);
  });

  test("every answer has X-Content-Type-Options: nosniff", async () => {
    const server = await startTestServer();
    for (const path of [
      "/",
      "/docs/errors",
      "/robots.txt",
      "/flags/",
      "/array/a/config",
      "/array/a/config.js",
      "/s/",
    ]) {
      expect([
        path,
        (await ask(server, `GET ${path}`)).headers.get("x-content-type-options"),
      ]).toEqual([path, "nosniff"]);
    }
  });

  test("the start page and robots.txt explain what this server is", async () => {
    const server = await startTestServer();
    const page = await ask(server, "GET /");
    expect([page.status, page.headers.get("content-type")]).toEqual([
      200,
      "text/html; charset=utf-8",
    ]);
    expect(page.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-/,
    );
    expect(page.body).toMatch(/Penstock[\s\S]*README\.md/);
    expect(page.body).not.toMatch(/<script|https?:/);
    const robots = await ask(server, "GET /robots.txt");
    expect([robots.status, robots.body]).toEqual([200, "User-agent: *\nDisallow: /\n"]);
    const icon = await ask(server, "GET /favicon.ico");
    expect([icon.status, icon.body]).toEqual([204, ""]);
    expect(server.finished).toEqual(["page 200", "page 200", "page 204"]);
  });

  test.each(["/", "/robots.txt", "/array/phc_a/config", "/flags/"])(
    "a HEAD of %s is answered without a body",
    async (path) => {
      const server = await startTestServer();
      const reply = await ask(server, `HEAD ${path}`);
      expect([reply.status, reply.body]).toEqual([200, ""]);
    },
  );

  test("pipelined requests on one connection are limited per turn", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(
      Buffer.concat(
        Array(1_000).fill(
          Buffer.concat([head({ "Content-Length": "1" }, "POST /s/"), Buffer.from("x")]),
        ),
      ),
    );
    await wire.ended();
    expect(server.finished.length).toBeLessThan(300);
  });
});
