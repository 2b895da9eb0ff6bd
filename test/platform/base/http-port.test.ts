import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HttpPort } from "../../../src/platform/base/http-port.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function connectedTo(answer: Answer, requestMsMax = 10_000): Promise<Socket> {
  const port = new HttpPort({
    ...{ answer, requestMsMax, connectionsMax: 4 },
    ...{ purpose: "tests", portName: "EFFECTS_PORT" },
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

test("the HTTP port closes a connection whose headers arrive too late", async () => {
  const socket = await connectedTo(() => {}, 200);
  socket.resume().write("GET / HTTP/1.1\r\nHost: 127.");
  await once(socket, "close");
});
