import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { connectTo, post, until } from "../../kit/http-server.ts";
import { flagsBody, startPassing } from "./upstream-kit.ts";

test("a forwarded request has the method, path, query, body and relevant headers", async () => {
  const passing = await startPassing(
    {},
    { recordIp: true, trustedProxies: "127.0.0.0/8", path: "/base/" },
  );
  const body = gzipSync(flagsBody("d"));
  const response = await fetch(`${passing.server.url}/flags/?v=2&ip=0&compression=gzip&data=%7B`, {
    method: "POST",
    body,
    headers: {
      "content-type": "text/plain",
      "content-encoding": "gzip",
      "user-agent": "sdk/1",
      cookie: "session=1",
      authorization: "Bearer secret",
      "x-forwarded-for": "8.8.8.8",
      "x-posthog-sdk": "js",
      "x-other": "1",
      connection: "close",
      te: "trailers",
      origin: "https://shop.example",
      referer: "https://shop.example/a",
      "accept-encoding": "zstd;q=0, GZIP, br;q=0.5, other",
    },
  });
  expect(response.status).toBe(200);
  const [asked] = passing.asked;
  expect(asked).toMatchObject({
    method: "POST",
    url: "/base/flags/?v=2&ip=0&compression=gzip&data=%7B",
  });
  expect(asked?.body.equals(body)).toBe(true);
  const { host, connection, ...headers } = asked?.headers ?? {};
  expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
  expect(connection).toBe("keep-alive");
  expect(headers).toEqual({
    accept: "*/*",
    "accept-language": "*",
    "accept-encoding": "br, gzip",
    "content-type": "text/plain",
    "content-encoding": "gzip",
    "user-agent": "sdk/1",
    "content-length": String(body.length),
    "x-posthog-sdk": "js",
    origin: "https://shop.example",
    referer: "https://shop.example/a",
    "x-forwarded-for": "8.8.8.8",
  });
});

test("a forwarded request has the connection's address, not a claimed address", async () => {
  const claimed = { headers: { "x-forwarded-for": "8.8.8.8" } };
  const recording = await startPassing({}, { recordIp: true });
  await fetch(`${recording.server.url}/flags/`, claimed);
  expect(recording.asked[0]?.headers["x-forwarded-for"]).toBe("127.0.0.1");
  const silent = await startPassing({}, { recordIp: false });
  await fetch(`${silent.server.url}/flags/`, claimed);
  expect(silent.asked[0]?.headers["x-forwarded-for"]).toBeUndefined();
});

test("a returned answer has the upstream's status, body and relevant headers", async () => {
  const passing = await startPassing();
  const body = gzipSync("x".repeat(100_000));
  passing.answer = (_, response) => {
    response.writeHead(401, {
      "content-type": "text/css",
      "content-encoding": "gzip",
      "set-cookie": "a=1",
      "access-control-allow-origin": "*",
      "x-own": "1",
      "retry-after": "3",
      "keep-alive": "timeout=9",
      vary: "Accept-Encoding",
      etag: '"e"',
    });
    response.end(body);
  };
  const response = await fetch(`${passing.server.url}/flags/`, {
    headers: { origin: "https://shop.example" },
  });
  expect(response.status).toBe(401);
  expect(await response.text()).toBe("x".repeat(100_000));
  const { headers } = response;
  expect(headers.get("content-type")).toBe("text/css");
  expect(headers.get("content-encoding")).toBe("gzip");
  expect(headers.get("access-control-allow-origin")).toBe("https://shop.example");
  expect(headers.get("retry-after")).toBe("3");
  expect(headers.get("etag")).toBe('"e"');
  expect(headers.get("vary")).toContain("Accept-Encoding");
  expect(headers.get("set-cookie")).toBeNull();
  expect(headers.get("x-own")).toBeNull();
});

test("a long answer is returned completely", async () => {
  const passing = await startPassing();
  const body = Buffer.alloc(3_000_000, "abcdefg");
  passing.answer = ({ url }, response) => {
    if (url.includes("cut")) {
      response.writeHead(200, { "content-length": "100" }).write("half");
      response.destroy();
    } else response.end(body);
  };
  const { url } = passing.server;
  const whole = await fetch(`${url}/static/recorder.js`);
  expect(Buffer.from(await whole.arrayBuffer()).equals(body)).toBe(true);
  const own = await fetch(`${url}/api/surveys/?token=x`);
  expect(Buffer.from(await own.arrayBuffer()).equals(body)).toBe(true);
  const head = await fetch(`${url}/flags/`, { method: "HEAD" });
  expect(head.headers.get("content-length")).toBe("3000000");
  expect((await fetch(`${url}/static/cut.js`)).status).toBe(503);
});

test.each([
  ["/flags/", "flags"],
  ["//flags/?v=2", "flags"],
  ["/decide/?v=3", "flags"],
  ["/flags/definitions?token=x", "features"],
  ["/array/phc_x/config", "config"],
  ["/static/array.js?v=1.2.3", "static"],
  ["/array/phc_x/config.js", "config"],
  ["/array/phc_x/array.js", "static"],
  ["/static/1.2.3/recorder.js.map", "static"],
  ["/static/surveys.css", "static"],
  ["/site_app/1/phc_x/hash/", "static"],
  ["/surveys", "features"],
  ["/api/surveys/?token=x", "features"],
  ["/api/early_access_features/?token=x", "features"],
  ["/api/feature_flag/local_evaluation?token=x", "features"],
  ["/api/projects/@current/feature_flags/a%20b/remote_config/", "features"],
  ["/s/", "recordings"],
  ["/i/v1/logs", "logs"],
])("%s is forwarded and counted under %s", async (path, kind) => {
  const passing = await startPassing();
  const response = await fetch(passing.server.url + path);
  expect(await response.text()).toBe(path.replace("//", "/"));
  expect(passing.ended).toEqual([`${kind} passed`]);
});

test.each([
  "/flags/../admin/",
  "/flags/%2e%2e/admin",
  "/static/%252e%252e/admin",
  "/static/..%2fadmin.js",
  "/static/a%5cb.js",
  "/static//evil.example/x.js",
  "/static/a%00.js",
  "/static/a%0d%0aX: y.js",
  "/static/a\\b.js",
  "/flagsx/",
  "/api/projects/1/persons/",
  "/api/users/@me/",
  "/admin/",
  "/",
  "/robots.txt",
  "http://evil.example/flags/",
  "/@evil.example/flags/",
])("%s is never forwarded", async (path) => {
  const passing = await startPassing();
  const wire = await connectTo(passing.server);
  wire.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  await wire.reply().catch(() => {});
  expect(passing.asked).toEqual([]);
});

test("a method that a path does not have is rejected", async () => {
  const passing = await startPassing();
  const { url } = passing.server;
  expect((await fetch(`${url}/flags/`, { method: "PUT", body: "x" })).status).toBe(405);
  expect((await fetch(`${url}/static/a.js`, { method: "DELETE" })).status).not.toBe(200);
  const origin = "https://shop.example";
  const headers = { origin, "access-control-request-headers": "content-type" };
  const preflight = await fetch(`${url}/flags/`, { method: "OPTIONS", headers });
  expect(preflight.status).toBe(200);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
  expect(passing.asked).toEqual([]);
});

test("events are accepted while the upstream does not respond", async () => {
  const passing = await startPassing();
  passing.answer = () => {};
  const waiting = fetch(`${passing.server.url}/flags/`).catch(() => undefined);
  await until(() => passing.asked.length === 1, "the upstream is asked");
  for (const path of ["/capture/", "/e/?compression=x", "/batch", "//i/v0/e/"]) {
    const response = await fetch(passing.server.url + path, { method: "POST", body: "{}" });
    expect(response.status).toBe(200);
  }
  expect(passing.server.taken.length).toBe(4);
  expect(passing.asked.length).toBe(1);
  await passing.away();
  await waiting;
});

test("the upstream request of a client that disconnects is cancelled", async () => {
  const passing = await startPassing();
  let isEnded = false;
  passing.answer = (_, response) => {
    response.on("close", () => {
      isEnded = true;
    });
  };
  const wire = await connectTo(passing.server);
  wire.write(post(flagsBody("d")).toString().replace("/capture/", "/flags/"));
  await until(() => passing.asked.length === 1, "the upstream is asked");
  wire.socket.destroy();
  await until(() => isEnded, "the upstream's connection ends");
  await until(() => passing.ended.length === 1, "it is counted");
  expect(passing.ended).toEqual(["flags gone"]);
  expect(passing.passThrough.inflight).toBe(0);
});

test("a body in pieces is forwarded completely", async () => {
  const passing = await startPassing();
  const body = "x".repeat(60_000);
  const wire = await connectTo(passing.server);
  wire.write(`POST /s/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
  for (let at = 0; at < body.length; at += 20_000) wire.write(body.slice(at, at + 20_000));
  expect((await wire.reply()).status).toBe(200);
  expect(passing.asked[0]?.body.toString()).toBe(body);
  const long = await fetch(`${passing.server.url}/s/`, {
    method: "POST",
    body: "x".repeat(150_000),
  });
  expect(long.status).toBe(413);
  expect(passing.asked.length).toBe(1);
});

test("unencoded bytes of a query are percent-encoded", async () => {
  const passing = await startPassing();
  const wire = await connectTo(passing.server);
  wire.write(Buffer.from('GET /flags/?a=é"b&v=2 HTTP/1.1\r\nHost: x\r\n\r\n'));
  await until(() => passing.asked.length === 1, "the upstream is asked");
  expect(passing.asked[0]?.url).toBe('/flags/?a=%C3%A9"b&v=2');
});
