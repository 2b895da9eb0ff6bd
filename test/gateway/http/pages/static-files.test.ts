import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  readStaticFiles,
  type StaticFiles,
} from "../../../../src/gateway/http/pages/static-files.ts";
import { posthogJsFolder } from "../../../../src/platform/base/pem.ts";
import {
  codeIn,
  connectTo,
  head,
  post,
  type Reply,
  startTestServer,
  type TestServer,
  until,
} from "../../../kit/http-server.ts";

const origin = "https://shop.example";
const scripts = {
  "array.js": "/* snippet */",
  "recorder.js": Array.from({ length: 60_000 }, (_, at) => `/* ${at * 7919} */`).join("\n"),
  "module.js": "export default 1",
  "main.js": "exports.x = 1",
  "rrweb.js": "const x=1;export{x}",
  "array.js.map": "{}",
};

let folder: string;
let files: StaticFiles | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "posthog-js-"));
  mkdirSync(join(folder, "dist"));
  writeFileSync(join(folder, "package.json"), '{"version":"1.2.3"}');
  for (const [name, text] of Object.entries(scripts))
    writeFileSync(join(folder, "dist", name), text);
  files = readStaticFiles(folder);
});

afterAll(() => rmSync(folder, { recursive: true }));

async function get(
  server: TestServer,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Reply> {
  const wire = await connectTo(server);
  wire.write(head(headers, `${method} ${path}`));
  return wire.reply(method === "HEAD");
}

describe("the SDK's scripts", () => {
  test.each([
    "/static/array.js",
    "/static/array.js?v=1.449.0",
    "/static/array.js/",
    "/static/1.449.0/array.js",
    "/static/1.449.0/array.js/",
    "/array/phc_a/array.js",
    "/array/phc_a/array.js/",
    "//static/array.js",
    `/array/${"a".repeat(200)}/array.js`,
  ])("are served at %s", async (path) => {
    const server = await startTestServer({ files });
    const reply = await get(server, path, { Origin: origin });
    expect([reply.status, reply.body]).toEqual([200, scripts["array.js"]]);
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "public, max-age=3600",
      "cross-origin-resource-policy": "cross-origin",
      "access-control-allow-origin": origin,
    });
    expect(server.finished).toEqual(["static 200"]);
  });

  test.each([
    "/static/module.js",
    "/static/main.js",
    "/static/rrweb.js",
    "/static/array.js.map",
    "/static/package.json",
    "/static/toolbar.js",
    "/static/__proto__.js",
    "/static/../package.json",
    "/static/..%2fpackage.json",
    "/static/../dist/array.js",
    "/static/x/array.js",
    "/static/array.js//",
    "/static/1.2.3/../array.js",
    "/array/phc_a/../array.js",
    "/static//array.js",
    "/static/array.js%00",
  ])("are not served at %s", async (path) => {
    const server = await startTestServer({ files });
    const reply = await get(server, path);
    expect([reply.status, codeIn(reply)]).toEqual([404, "not_found"]);
  });

  test("are answered 404 with the install command if they are missing", async () => {
    const with_ = await startTestServer({ files });
    const detailOf = async (path: string) => JSON.parse((await get(with_, path)).body).detail;
    const none = "posthog-js 1.2.3, which is served here, has no such script";
    expect(await detailOf("/static/toolbar.js")).toBe(
      `There is nothing at /static/toolbar.js: ${none}`,
    );
    expect(await detailOf("/static/1.449.0/arry.js")).toBe(
      `There is nothing at /static/1.449.0/arry.js: ${none}; did you mean /static/array.js?`,
    );
    expect(await detailOf("/array/any%22key/recoder.js")).toBe(
      `There is nothing at /array/<key>/recoder.js: ${none}; did you mean /static/recorder.js?`,
    );
    const without = await startTestServer();
    const reply = await get(without, "/static/array.js", { Origin: origin });
    expect(JSON.parse(reply.body).detail).toMatch(/PENSTOCK_POSTHOG_JS to the folder/);
    // Without CORS headers the browser would report a CORS error instead.
    expect(reply.headers.get("access-control-allow-origin")).toBe(origin);
  });

  test("are answered 304 if If-None-Match has the current ETag", async () => {
    const server = await startTestServer({ files });
    const etag = (await get(server, "/static/array.js")).headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]+"$/);
    for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const reply = await get(server, "/static/array.js", { "If-None-Match": tags });
      expect([reply.status, reply.body, reply.headers.get("etag")]).toEqual([304, "", etag]);
    }
    for (const tags of ['"other"', etag.slice(0, -2), ""]) {
      expect((await get(server, "/static/array.js", { "If-None-Match": tags })).status).toBe(200);
    }
  });

  test("are sent as gzip with a separate ETag", async () => {
    const server = await startTestServer({ files });
    const socketBytes = async (headers: Record<string, string>) => {
      const response = await fetch(`${server.url}/static/recorder.js`, { headers });
      const [coding, etag] = [
        response.headers.get("content-encoding"),
        response.headers.get("etag"),
      ];
      return { text: await response.text(), coding, etag };
    };
    let zipped = await socketBytes({ "Accept-Encoding": "br, gzip;q=0.5" });
    // The first client that requests the script may get it uncompressed.
    while (zipped.coding === null)
      zipped = await socketBytes({ "Accept-Encoding": "br, gzip;q=0.5" });
    const plain = await socketBytes({ "Accept-Encoding": "gzip;q=0, identity" });
    expect([zipped.coding, plain.coding]).toEqual(["gzip", null]);
    expect([zipped.text, plain.text]).toEqual([scripts["recorder.js"], scripts["recorder.js"]]);
    expect(zipped.etag).not.toBe(plain.etag);
    const { names } = files!;
    expect([...names].sort()).toEqual(["array.js", "recorder.js"]);
  });

  test("are sent completely to a slow client", async () => {
    const body = Buffer.alloc(8_000_000, scripts["recorder.js"]);
    const server = await startTestServer({ files: filesOf(body) });
    const wire = await connectTo(server);
    let [received, isPaused] = [Buffer.alloc(0), false];
    wire.socket.removeAllListeners("data").on("data", (part: Buffer) => {
      received = Buffer.concat([received, part]);
      if (isPaused || received.length < 1_000_000) return;
      isPaused = true;
      wire.socket.pause();
      setImmediate(() => {
        expect(server.http.inflight()).toBe(1);
        wire.socket.resume();
      });
    });
    wire.write(head({}, "GET /static/array.js"));
    await wire.ended();
    expect(received.subarray(received.indexOf("\r\n\r\n") + 4).equals(body)).toBe(true);
    expect(received.subarray(0, 500).toString()).toMatch(
      /Connection: close\r\n.*Content-Length: 8000000\r\n\r\n/s,
    );
    expect([server.finished, server.aborted]).toEqual([["static 200"], []]);
  });

  test("close the connection, so a pipelined request is not answered", async () => {
    const server = await startTestServer({ files: filesOf(Buffer.alloc(100_000)) });
    const wire = await connectTo(server);
    const asked = head({}, "GET /static/array.js");
    wire.write(asked);
    await wire.reply();
    wire.write(post("{}"));
    await wire.ended();
    const both = await connectTo(server);
    both.write(Buffer.concat([asked, post("{}")]));
    await both.ended();
    expect(server.taken).toEqual([]);
  });

  test("use no memory while clients do not read the answers", async () => {
    const server = await startTestServer({ files: filesOf(Buffer.alloc(20_000_000)) });
    const before = process.memoryUsage().rss;
    const wires = await Promise.all(Array.from({ length: 50 }, () => connectTo(server)));
    for (const wire of wires) {
      wire.socket.pause();
      wire.write(head({}, "GET /static/array.js"));
    }
    await until(() => server.http.inflight() === wires.length, "all are on their way");
    // One copy per client would take 1 GB.
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
    for (const wire of wires) wire.socket.destroy();
  });

  test("count as aborted if the client disconnects during the transfer", async () => {
    const server = await startTestServer({ files: filesOf(Buffer.alloc(64_000_000)) });
    const wire = await connectTo(server);
    wire.socket.pause();
    wire.write(head({}, "GET /static/array.js"));
    await until(
      () => wire.socket.bytesRead > 0 || server.http.inflight() === 1,
      "it is on its way",
    );
    wire.socket.destroy();
    await until(() => server.http.inflight() === 0, "it is given up");
    expect([server.finished, server.aborted]).toEqual([[], ["answer"]]);
  });

  test("are answered with their headers only to HEAD", async () => {
    const server = await startTestServer({ files });
    const reply = await get(server, "/static/recorder.js", {}, "HEAD");
    expect([reply.status, reply.body, reply.headers.has("etag")]).toEqual([200, "", true]);
  });

  test("are read from the configured folder", async () => {
    expect(posthogJsFolder(folder)).toBe(folder);
    expect(posthogJsFolder("off")).toBe("off");
    expect(readStaticFiles("off")).toBeUndefined();
    expect(() => posthogJsFolder(join(folder, "dist"))).toThrow(
      /posthog-js, or off: .* contains no dist\/array\.js/,
    );
    expect(() => posthogJsFolder("")).toThrow("must not be empty");
  });
});

function filesOf(body: Buffer): StaticFiles {
  return { ...files!, answer: () => ({ status: 200, headers: [], body }) };
}
