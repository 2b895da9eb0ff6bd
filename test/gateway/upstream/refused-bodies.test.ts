import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { PassedHead, PassedKind } from "../../../src/gateway/upstream/passed-head.ts";
import { UpstreamClient } from "../../../src/gateway/upstream/upstream-client.ts";

const stop = new AbortController().signal;
const large = Buffer.alloc(16_000_000);
const tooLarge = "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 9\r\n\r\ntoo large";
const small = Buffer.from("{}");

function clientOf(url: string, monotonicMs = () => 0): UpstreamClient {
  const client = new UpstreamClient({ url, requestsMax: 8, timeoutMs: 20_000, monotonicMs });
  onTestFinished(() => client.close());
  return client;
}

function headOf(kind: PassedKind): PassedHead {
  const path = kind === "recordings" ? "/s/" : "/";
  return { kind, method: "POST", path, query: "", headers: {}, ifNoneMatch: "" };
}

async function askTimes(
  client: UpstreamClient,
  kind: PassedKind,
  { body, times = 4 }: { readonly body: Buffer; readonly times?: number },
): Promise<(string | number)[]> {
  const all: (string | number)[] = [];
  for (let n = 0; n < times; n++) {
    const answer = await client.ask(headOf(kind), body, stop);
    all.push(typeof answer === "string" ? answer : answer.status);
  }
  return all;
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("the gateway stops sending a body after the upstream has answered", async () => {
  const answered = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<"closed" | "all came">();
  const server = createNetServer((socket) => {
    let bytes = 0;
    socket.on("error", () => {});
    socket.on("close", () => ended.resolve("closed"));
    socket.once("data", () => {
      socket.write(tooLarge);
      socket.pause();
      answered.promise.then(() => socket.resume());
    });
    socket.on("data", ({ length }) => {
      bytes += length;
      if (bytes > large.length) ended.resolve("all came");
    });
  });
  const client = clientOf(await listening(server));
  expect(await askTimes(client, "flags", { body: large, times: 1 })).toEqual([413]);
  answered.resolve();
  expect(await ended.promise).toBe("closed");
});

test.each(["flags", "recordings"] as const)(
  "a connection that breaks during %s does not count against the upstream",
  async (kind) => {
    const server = createNetServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.resetAndDestroy());
    });
    const client = clientOf(await listening(server));
    const ended = ["ended", "ended", "ended", "ended"];
    expect(await askTimes(client, kind, { body: large })).toEqual(ended);
  },
);

test.each(["recordings", "logs"] as const)(
  "the upstream never counts as down for %s",
  async (kind) => {
    let isCut = false;
    const url = await listening(
      createServer((request, response) => {
        const isCutNow = isCut;
        request.resume().on("end", () => {
          if (isCutNow) request.socket.destroy();
          else response.writeHead(502).end();
        });
      }),
    );
    const client = clientOf(url);
    expect(await askTimes(client, kind, { body: small })).toEqual([502, 502, 502, 502]);
    isCut = true;
    const ended = ["ended", "ended", "ended", "ended"];
    expect(await askTimes(client, kind, { body: small })).toEqual(ended);
    expect(await askTimes(client, "flags", { body: small, times: 3 })).not.toContain("ended");
    isCut = false;
    expect(await askTimes(client, "flags", { body: small, times: 1 })).toEqual(["unavailable"]);
    expect(await askTimes(client, kind, { body: small, times: 1 })).toEqual([502]);
  },
);

test("the upstream counts as down if it refuses connections", async () => {
  const server = createServer((_, response) => void response.end());
  const url = await listening(server);
  const port = Number(new URL(url).port);
  const client = clientOf(url);
  const unavailable = ["unavailable", "unavailable", "unavailable"];
  for (const kind of ["recordings", "flags"] as const) {
    server.close();
    expect(await askTimes(client, kind, { body: large, times: 3 })).toEqual(unavailable);
    await once(server.listen(port, "127.0.0.1"), "listening");
    expect(await askTimes(client, kind, { body: small, times: 1 })).toEqual(["unavailable"]);
  }
});

async function answering(statuses: { flags?: number; recordings?: number }): Promise<string> {
  const server = createServer((request, response) => {
    const status = request.url === "/s/" ? statuses.recordings : statuses.flags;
    if (status !== undefined) response.writeHead(status).end();
  });
  return await listening(server);
}

test("flags are returned while a recording waits for its answer", async () => {
  const statuses: { flags?: number } = { flags: 503 };
  let nowMs = 0;
  const client = clientOf(await answering(statuses), () => nowMs);
  const failed = [503, 503, 503, "unavailable"];
  expect(await askTimes(client, "flags", { body: small })).toEqual(failed);
  statuses.flags = 200;
  nowMs = 2_000;
  const left = new AbortController();
  const recording = client.ask(headOf("recordings"), small, left.signal);
  expect(await askTimes(client, "flags", { body: small, times: 2 })).toEqual([200, 200]);
  left.abort();
  expect(await recording).toBe("gone");
});

test("flags stay unavailable while they fail", async () => {
  const client = clientOf(await answering({ flags: 503, recordings: 200 }));
  for (let n = 0; n < 3; n++) {
    expect(await askTimes(client, "flags", { body: small, times: 1 })).toEqual([503]);
    expect(await askTimes(client, "recordings", { body: small, times: 1 })).toEqual([200]);
  }
  expect(await askTimes(client, "flags", { body: small, times: 1 })).toEqual(["unavailable"]);
  expect(await askTimes(client, "recordings", { body: small, times: 1 })).toEqual([200]);
});
