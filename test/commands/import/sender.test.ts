import type { Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Sender, Stopped } from "../../../src/commands/import/sender.ts";

type Scripted =
  | "reset"
  | { readonly status: number; readonly headers?: object; readonly text?: string };

const stored: Scripted = { status: 200, text: '{"status":"Ok","accepted":2,"dropped":0}' };

interface World {
  readonly url: URL;
  readonly bodies: string[];
  readonly atMs: number[];
}

async function gatewayThatSays(...script: Scripted[]): Promise<World> {
  const bodies: string[] = [];
  const atMs: number[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      bodies.push(`${request.url} ${body}`);
      atMs.push(performance.now());
      const next = script.shift() ?? stored;
      if (next === "reset") request.socket.destroy();
      else response.writeHead(next.status, { ...next.headers }).end(next.text ?? "");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/behind`), bodies, atMs };
}

function senderTo(url: URL, options: Partial<ConstructorParameters<typeof Sender>[0]> = {}) {
  const said: (string | undefined)[] = [];
  const sender = new Sender({
    url,
    gzip: false,
    giveUpAfterMs: Number.POSITIVE_INFINITY,
    stop: new AbortController().signal,
    trouble: (why) => void said.push(why),
    ...options,
  });
  onTestFinished(() => sender.close());
  return { sender, said };
}

const body = Buffer.from("[1,2]");

test("import repeats a request after a temporary error", async () => {
  const { url, bodies, atMs } = await gatewayThatSays(
    { status: 503, headers: { "retry-after": "1" }, text: '{"code":"overloaded","detail":"Full"}' },
    "reset",
    { status: 502, text: "Bad Gateway" },
    {
      status: 429,
      headers: { "retry-after": "0" },
      text: '{"code":"rate_limited","detail":"Quota"}',
    },
  );
  const { sender, said } = senderTo(url);
  expect(await sender.send(body, 2)).toMatchObject({ kind: "done", accepted: 2 });
  expect(bodies).toEqual(Array(5).fill("/behind/batch/ [1,2]"));
  expect(atMs[1]! - atMs[0]!).toBeGreaterThanOrEqual(1_000);
  expect(said).toEqual([
    "503 overloaded: Full",
    expect.stringMatching(/socket hang up|ECONNRESET/),
    "502 Bad Gateway",
    "429 rate_limited: Quota",
    undefined,
  ]);
});

test.each([["0"], ["Thu, 01 Jan 2015 00:00:00 GMT"]])(
  "import slows down without a requested pause (Retry-After: %s)",
  async (retryAfter) => {
    const away = { status: 503, headers: { "retry-after": retryAfter } };
    const { url, atMs } = await gatewayThatSays(away, away, away);
    await senderTo(url).sender.send(body, 2);
    const pauses = atMs.slice(1).map((ms, index) => ms - atMs[index]!);
    expect(pauses).toHaveLength(3);
    // A timer of Node may fire up to 1 ms early.
    for (const [index, leastMs] of [200, 400, 800].entries())
      expect(pauses[index]).toBeGreaterThanOrEqual(leastMs - 1);
  },
);

test("import gives up after the configured time", async () => {
  const { url } = await gatewayThatSays(...Array(50).fill({ status: 503 }));
  const { sender } = senderTo(url, { giveUpAfterMs: 1 });
  await expect(sender.send(body, 2)).rejects.toThrow("gave up after 0.001 s: 503");
});

test.each([
  ["sends 102 forever", (response: ServerResponse) => response.writeProcessing()],
  ["sends its answer byte by byte", (response: ServerResponse) => response.write(" ")],
])("import retries a gateway that %s", async (_, trickle) => {
  const server = createServer((request, response) => {
    request.resume();
    const timer = setInterval(() => trickle(response), 20);
    response.on("close", () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}`);
  const { sender } = senderTo(url, { giveUpAfterMs: 1, answerMsMax: 300 });
  const why = "gave up after 0.001 s: no complete response within 0.3 s";
  await expect(sender.send(body, 2)).rejects.toThrow(why);
});

test("import stops immediately if it is stopped during a pause", async () => {
  const { url } = await gatewayThatSays({ status: 503, headers: { "retry-after": "600" } });
  const stop = new AbortController();
  const { sender } = senderTo(url, { stop: stop.signal, trouble: () => stop.abort() });
  await expect(sender.send(body, 2)).rejects.toThrow(Stopped);
});

test.each([
  [{ status: 413, text: '{"code":"too_many_events","detail":"D"}' }, { kind: "tooLarge" }],
  [
    { status: 401, text: '{"code":"unknown_api_key","detail":"D"}' },
    { kind: "refused", why: "401 unknown_api_key: D", isNothingStored: true },
  ],
  [
    { status: 301, text: "" },
    { kind: "refused", isNothingStored: false },
  ],
  [
    { status: 200, text: '{"status":1}' },
    { kind: "refused", isNothingStored: false },
  ],
  [
    { status: 400, text: '{"code":"invalid_properties","detail":"D"}' },
    {
      kind: "done",
      accepted: 0,
      dropped: 1,
      errors: [{ index: 0, code: "invalid_properties", detail: "D" }],
    },
  ],
])("import determines the outcome of a request from the answer %j", async (answer, outcome) => {
  const { url } = await gatewayThatSays(answer);
  expect(await senderTo(url).sender.send(body, 1)).toMatchObject(outcome);
});
