import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { until } from "../../kit/http-server.ts";
import { flagsBody, type Passing, startPassing } from "./upstream-kit.ts";

function answersWith(passing: Passing, headers: Record<string, string>): void {
  let answers = 0;
  passing.answer = (_, response) => {
    response.writeHead(200, headers).end(`answer ${++answers}`);
  };
}

async function get(passing: Passing, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(passing.server.url + path, { headers });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

async function flags(passing: Passing, distinctId: string, query = "?v=2&_=1") {
  const body = flagsBody(distinctId);
  const response = await fetch(`${passing.server.url}/flags/${query}`, { method: "POST", body });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

test("a script is served stale while the upstream is down", async () => {
  let nowMs = 0;
  const passing = await startPassing({}, { monotonicMs: () => nowMs });
  answersWith(passing, { "cache-control": "public, max-age=60", etag: '"one"' });
  expect((await get(passing, "/static/a.js")).text).toBe("answer 1");
  nowMs = 59_000;
  expect((await get(passing, "/static/a.js")).text).toBe("answer 1");
  const same = await get(passing, "/static/a.js", { "if-none-match": 'W/"one"' });
  expect([same.status, same.text]).toEqual([304, ""]);
  nowMs = 61_000;
  expect((await get(passing, "/static/a.js")).text).toBe("answer 2");
  await passing.away();
  nowMs = 3_000_000;
  const kept = await get(passing, "/static/a.js");
  expect([kept.status, kept.text, kept.headers.get("age")]).toEqual([200, "answer 2", "2939"]);
  expect(kept.headers.get("cache-control")).toBe("no-cache");
  nowMs = 61_000 + 3_600_001;
  expect((await get(passing, "/static/a.js")).status).toBe(503);
  expect(passing.ended.map((one) => one.replace("static ", ""))).toEqual([
    "passed",
    "fresh",
    "fresh",
    "passed",
    "kept",
    "failed",
  ]);
});

test("private responses and responses with an unsupported Vary are not cached", async () => {
  const passing = await startPassing();
  for (const headers of [
    { "cache-control": "private, max-age=60" },
    { "cache-control": "no-store" },
    { "cache-control": "max-age=60", vary: "Cookie" },
  ]) {
    answersWith(passing, headers as Record<string, string>);
    expect((await get(passing, "/static/a.js")).text).toBe("answer 1");
    expect((await get(passing, "/static/a.js")).text).toBe("answer 2");
  }
  expect(passing.passThrough.keptBytes).toBe(0);
});

test("content codings and page configurations are cached separately", async () => {
  const passing = await startPassing();
  passing.answer = ({ headers }, response) => {
    const coding = headers["accept-encoding"] === "gzip" ? "gzip" : undefined;
    response.setHeader("cache-control", "max-age=60");
    if (coding !== undefined) response.setHeader("content-encoding", coding);
    const text = `for ${headers["origin"]}`;
    response.end(coding === undefined ? text : gzipSync(text));
  };
  for (const coding of ["gzip", "identity", "gzip, other", "identity"]) {
    const { text } = await get(passing, "/static/a.js", { "accept-encoding": coding });
    expect(text).toBe("for undefined");
  }
  expect(passing.asked.length).toBe(2);
  for (const origin of ["https://a.example", "https://b.example", "https://a.example"]) {
    const { text } = await get(passing, "/array/phc_x/config", { origin });
    expect(text).toBe(`for ${origin}`);
  }
  expect(passing.asked.length).toBe(4);
});

test.each([
  ["a 429", 429, {}],
  ["a private response", 200, { "cache-control": "private" }],
])("an answer for one client (%s) is not shared with waiting clients", async (_, status, own) => {
  let nowMs = 0;
  const passing = await startPassing({}, { monotonicMs: () => nowMs });
  const waiting: ServerResponse[] = [];
  const both = async (path: string) => {
    waiting.length = 0;
    const first = get(passing, path);
    await until(() => waiting.length === 1, "it is asked");
    const second = get(passing, path);
    await until(() => passing.server.http.inflight() === 2, "both wait");
    passing.answer = (_asked, response) => {
      response.writeHead(200, { "cache-control": "max-age=60" }).end("for all");
    };
    waiting[0]!.writeHead(status, own).end("for one");
    return await Promise.all([first, second]);
  };
  const hold = (_asked: unknown, response: ServerResponse) => void waiting.push(response);
  passing.answer = hold;
  const fresh = await both("/static/a.js");
  expect(fresh.map((one) => one.text)).toEqual(["for one", "for all"]);
  nowMs = 61_000;
  passing.answer = hold;
  const old = await both("/static/a.js");
  expect(old.map((one) => one.text)).toEqual(["for one", "for all"]);
  expect(passing.ended).toEqual(["static passed", "static passed", "static passed", "static kept"]);
});

test("concurrent clients share one upstream request", async () => {
  const passing = await startPassing();
  let waiting: ServerResponse | undefined;
  passing.answer = (_, response) => {
    waiting = response;
  };
  const all = [1, 2, 3].map(() => get(passing, "/array/phc_x/config.js"));
  await until(() => passing.server.http.inflight() === 3, "all have come");
  await until(() => waiting !== undefined, "the upstream is asked");
  waiting?.end("config");
  expect((await Promise.all(all)).map(({ text }) => text)).toEqual(["config", "config", "config"]);
  expect(passing.asked.length).toBe(1);
});

test("a known person gets the last flags while the upstream is down", async () => {
  const passing = await startPassing();
  answersWith(passing, { "content-type": "application/json", "cache-control": "no-store" });
  expect((await flags(passing, "ada")).text).toBe("answer 1");
  expect((await flags(passing, "ada")).text).toBe("answer 2");
  passing.answer = (_, response) => void response.writeHead(502).end("bad gateway");
  const kept = await flags(passing, "ada", "?v=2&_=99");
  expect([kept.status, kept.text]).toEqual([200, "answer 2"]);
  expect(kept.headers.get("age")).toBe("0");
  expect((await flags(passing, "ada", "?v=3")).status).toBe(503);
  await passing.away();
  expect((await flags(passing, "ada")).text).toBe("answer 2");
  const other = await flags(passing, "bob");
  expect(other.status).toBe(503);
  expect(JSON.parse(other.text)).toMatchObject({ code: "upstream_unavailable" });
  expect(other.headers.get("retry-after")).toMatch(/^[1-5]$/);
});

test("an unsuccessful answer is returned but not cached", async () => {
  const passing = await startPassing();
  passing.answer = (_, response) => void response.writeHead(401).end("whose key?");
  expect((await flags(passing, "ada")).status).toBe(401);
  passing.answer = (_, response) => void response.writeHead(429).end("slowly");
  expect((await flags(passing, "ada")).status).toBe(429);
  await passing.away();
  expect((await flags(passing, "ada")).status).toBe(503);
});

test("requests to a failing upstream pause until the upstream recovers", async () => {
  let nowMs = 0;
  const passing = await startPassing({}, { monotonicMs: () => nowMs });
  passing.answer = (_, response) => void response.writeHead(502).end();
  for (let n = 0; n < 6; n++) expect((await flags(passing, `id ${n}`)).status).toBe(503);
  expect(passing.asked.length).toBe(3);
  nowMs += 1_001;
  passing.answer = (_, response) => void response.end("back");
  expect((await flags(passing, "ada")).text).toBe("back");
  expect((await flags(passing, "bob")).text).toBe("back");
});

test("a client whose requests all fail with 500 does not affect another client", async () => {
  const passing = await startPassing();
  passing.answer = ({ body }, response) => {
    const isEvil = body.includes("evil");
    response.writeHead(isEvil ? 500 : 200).end(isEvil ? "" : "flags");
  };
  for (let n = 0; n < 6; n++) expect((await flags(passing, "evil")).status).toBe(503);
  expect(passing.asked.length).toBe(6);
  expect((await flags(passing, "ada")).text).toBe("flags");
});

test("an upstream that times out counts as down", async () => {
  const passing = await startPassing({ upstreamTimeoutMs: 300, upstreamRequestsMax: 2 });
  passing.answer = (_, response) => void response.end("flags of ada");
  expect((await flags(passing, "ada")).status).toBe(200);
  passing.answer = () => {};
  const slow = [flags(passing, "ada"), flags(passing, "bob")];
  await until(() => passing.asked.length === 3, "two are on their way");
  expect((await flags(passing, "carl")).status).toBe(503);
  expect((await flags(passing, "ada")).text).toBe("flags of ada");
  const [ada, bob] = await Promise.all(slow);
  expect([ada?.text, bob?.status]).toEqual(["flags of ada", 503]);
  expect(passing.ended).toEqual([
    "flags passed",
    "flags full",
    "flags kept",
    "flags kept",
    "flags failed",
  ]);
});

test("the cache evicts the least recently used entries first", async () => {
  const passing = await startPassing({ upstreamKeptBytesMax: 400_000 });
  passing.answer = ({ url }, response) => {
    const length = url.includes("large") ? 50_000 : 9_000;
    response.writeHead(200, { "cache-control": "max-age=600" }).end("x".repeat(length));
  };
  for (let n = 0; n < 20; n++) {
    await get(passing, `/static/${n}.js`);
    await get(passing, "/static/0.js");
  }
  await get(passing, "/static/large.js");
  expect(passing.passThrough.keptBytes).toBeLessThanOrEqual(100_000);
  expect(passing.passThrough.keptBytes).toBeGreaterThan(80_000);
  for (let n = 0; n < 30; n++) await get(passing, `/static/0.js?fill=${n}`);
  const before = passing.asked.length;
  await get(passing, "/static/0.js");
  await get(passing, "/static/19.js");
  expect(passing.asked.length).toBe(before);
  await get(passing, "/static/1.js");
  await get(passing, "/static/large.js");
  expect(passing.asked.length).toBe(before + 2);
});

test("the local script is served while the upstream cannot provide it", async () => {
  const own = { status: 200, headers: [["Cache-Control", "max-age=3600"]], body: "own" } as const;
  const files = { folder: "", version: "1", names: ["array.js"] };
  let nowMs = 0;
  const passing = await startPassing(
    {},
    {
      monotonicMs: () => nowMs,
      files: { ...files, answer: (name) => (name === "array.js" ? own : undefined) },
    },
  );
  answersWith(passing, { "cache-control": "no-store" });
  expect((await get(passing, "/static/array.js")).text).toBe("answer 1");
  await passing.away();
  const { text, headers } = await get(passing, "/static/array.js");
  expect([text, headers.get("cache-control")]).toEqual(["own", "no-cache"]);
  expect((await get(passing, "/static/recorder.js")).status).toBe(503);
  const payload = await get(passing, "/api/projects/1/feature_flags/a/remote_config?token=x");
  expect([payload.status, payload.text]).toEqual([200, "null\n"]);
  await passing.back();
  nowMs += 60_000;
  expect((await get(passing, "/static/array.js")).text).toBe("answer 2");
});

test("the Age of an upstream answer shortens its freshness", async () => {
  let nowMs = 0;
  const passing = await startPassing({}, { monotonicMs: () => nowMs });
  answersWith(passing, { "cache-control": "max-age=60", age: "50" });
  expect((await get(passing, "/static/a.js")).headers.get("age")).toBe("50");
  nowMs = 9_000;
  const fresh = await get(passing, "/static/a.js");
  expect([fresh.text, fresh.headers.get("age")]).toEqual(["answer 1", "59"]);
  nowMs = 11_000;
  expect((await get(passing, "/static/a.js")).text).toBe("answer 2");
});

test("scripts that are requested once do not evict a popular script", async () => {
  const passing = await startPassing({ upstreamKeptBytesMax: 65_536 });
  const script = "x".repeat(1_000);
  passing.answer = (_, response) => {
    response.writeHead(200, { "cache-control": "max-age=600" }).end(script);
  };
  for (let times = 0; times < 2; times++) await get(passing, "/static/array.js");
  for (let number = 0; number < 40; number++) await get(passing, `/static/array.js?v=${number}`);
  expect(passing.passThrough.keptBytes).toBeLessThanOrEqual(65_536 / 4);
  const before = passing.asked.length;
  await get(passing, "/static/array.js");
  await get(passing, "/static/%61rray.js");
  expect(passing.asked.length).toBe(before);
  for (let times = 0; times < 3; times++) await get(passing, "/static/new.js");
  expect(passing.asked.length).toBe(before + 1);
});
