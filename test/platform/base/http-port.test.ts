import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HttpPort } from "../../../src/platform/base/http-port.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function connectedTo(answer: Answer, requestMsMax = 10_000): Promise<Socket> {
  const port = new HttpPort({
    answer,
    requestMsMax,
    connectionsMax: 4,
    purpose: "tests",
    setting: "effectsPort",
  });
  const socket = connect(await port.listen("127.0.0.1", 0), "127.0.0.1").setEncoding("latin1");
  socket.on("error", () => {});
  onTestFinished(async () => {
    socket.destroy();
    await port.close();
  });
  return socket;
}

function get(path: string, head = "Host: 127.0.0.1\r\n"): string {
  return `GET ${path} HTTP/1.1\r\n${head}\r\n`;
}

test.each([
  ["plain", ""],
  ["with a body that waits for 100 (Continue)", "Expect: 100-continue\r\nContent-Length: 1\r\n"],
  ["with an unknown expectation", "Expect: nothing\r\n"],
])("the HTTP port closes a connection with pipelined requests: %s", async (_what, head) => {
  const gone = Promise.withResolvers<void>();
  const paths: (string | undefined)[] = [];
  const socket = await connectedTo(({ url }, response) => {
    paths.push(url);
    response.once("close", gone.resolve);
  });
  socket.resume().write(get("/held") + get("/ahead", `Host: 127.0.0.1\r\n${head}`).repeat(300));
  await Promise.all([once(socket, "close"), gone.promise]);
  expect(paths).toEqual(["/held"]);
});

test("the HTTP port closes a connection with pipelined requests without a Host", async () => {
  const socket = await connectedTo(() => {});
  socket.resume().write(get("/held") + get("/ahead", "").repeat(300));
  await once(socket, "close");
});

test("the HTTP port answers sequential requests on one connection", async () => {
  const socket = await connectedTo(({ url }, response) => {
    const body = "x".repeat(Number(url?.slice(1)));
    response.end(body);
  });
  let answers = "";
  socket.on("data", (text: string) => {
    answers += text;
  });
  for (const bytes of [10, 30_000_000, 0, 1_000_000]) {
    answers = "";
    socket.write(get(`/${bytes}`));
    await expect
      .poll(() => answers.length - answers.indexOf("\r\n\r\n") - 4, { timeout: 10_000 })
      .toBe(bytes);
  }
});

test("the HTTP port rejects a request without a required Host", async () => {
  const answered: Answer = (_request, response) => void response.end("yes");
  for (const [version, status] of [
    ["1.1", 400],
    ["1.0", 200],
  ] as const) {
    const socket = await connectedTo(answered);
    socket.write(`GET / HTTP/${version}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [string];
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  }
});

async function fullPort(answer: Answer) {
  const port = new HttpPort({
    answer,
    connectionsMax: 4,
    purpose: "tests",
    setting: "adminPort",
  });
  const at = await port.listen("127.0.0.1", 0);
  const sockets: Socket[] = [];
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await port.close();
  });
  const open = async (text: string): Promise<Socket> => {
    const socket = connect(at, "127.0.0.1").setEncoding("latin1");
    sockets.push(socket);
    socket.on("error", () => {}).write(text);
    await once(socket, "connect");
    return socket;
  };
  return { open, sockets };
}

async function isAnswered(socket: Socket): Promise<boolean> {
  return await Promise.race([
    once(socket, "data").then(() => true),
    once(socket, "close").then(() => false),
  ]);
}

test("a new connection replaces the oldest idle one, so that idle connections do not block the port", async () => {
  const held: ServerResponse[] = [];
  const { open, sockets } = await fullPort(
    ({ url }, response) => void (url === "/hold" ? held.push(response) : response.end("ok")),
  );
  const busy = await open(get("/hold"));
  await expect.poll(() => held.length).toBe(1);
  // Parts of a head, which never become requests.
  for (let count = 0; count < 20; count++) await open("GET / HT");
  expect(await isAnswered(await open(get("/livez")))).toBe(true);
  expect(busy.closed).toBe(false);
  const isOpen = sockets.filter((socket) => !socket.closed);
  expect(isOpen.length).toBeLessThanOrEqual(4);
  for (let count = 0; count < 3; count++) await open(get("/hold"));
  await expect.poll(() => held.length).toBe(4);
  // Every connection has a request, so the new one is closed.
  expect(await isAnswered(await open(get("/livez")))).toBe(false);
  held.pop()!.end("ok");
  await expect.poll(async () => await isAnswered(await open(get("/livez")))).toBe(true);
});

test("the HTTP port closes a connection whose headers arrive too late", async () => {
  const socket = await connectedTo(() => {}, 200);
  socket.resume().write("GET / HTTP/1.1\r\nHost: 127.");
  await once(socket, "close");
});

/** Is larger than the buffers of the kernel for both ends of a connection. */
const long = "x".repeat(30_000_000);

test("a new connection replaces the oldest one whose client does not read its answer", async () => {
  const closed: (string | undefined)[] = [];
  let unread = 0;
  const { open } = await fullPort(({ url }, response) => {
    if (url === "/livez") return void response.end("ok");
    unread += 1;
    response.once("close", () => closed.push(url)).end(long);
  });
  for (let count = 0; count < 4; count++) {
    await open(get(`/${count}`));
    await expect.poll(() => unread).toBe(count + 1);
  }
  expect(await isAnswered(await open(get("/livez")))).toBe(true);
  expect(closed).toEqual(["/0"]);
});

test("the HTTP port closes a connection whose client does not read the answer", async () => {
  const closed = Promise.withResolvers<void>();
  const socket = await connectedTo((_request, response) => {
    response.once("close", closed.resolve).end(long);
  }, 200);
  socket.write(get("/"));
  await closed.promise;
  let received = 0;
  socket.on("data", ({ length }: string) => {
    received += length;
  });
  await once(socket, "close");
  expect(received).toBeLessThan(long.length);
});

test("the HTTP port does not close a long answer whose client reads", async () => {
  let closed = false;
  const socket = await connectedTo((_request, response) => {
    response.once("close", () => {
      closed = true;
    });
    const writing = setInterval(() => response.write("x".repeat(100_000)), 10);
    // Without bytes to send, the connection stays open too.
    setTimeout(() => clearInterval(writing), 600);
    setTimeout(() => response.end("end"), 1_200);
  }, 200);
  let received = "";
  socket.on("data", (text: string) => {
    received += text;
  });
  socket.write(get("/"));
  await expect.poll(() => received, { timeout: 5_000 }).toContain("end");
  expect(received.length).toBeGreaterThan(1_000_000);
  await expect.poll(() => closed).toBe(true);
});
