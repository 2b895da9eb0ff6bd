import { createConnection, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { head, post, startTestServer, type TestServer, until } from "../../kit/http-server.ts";

const script = Buffer.alloc(2_000_000, "x");
const files = {
  folder: "",
  version: "",
  names: [],
  answer: () => ({ status: 200, headers: [], body: script }) as const,
};

async function start(): Promise<TestServer> {
  return startTestServer({ files });
}

interface Reader {
  readonly socket: Socket;
  received: number;
  isReset: boolean;
  isEnded: boolean;
}

async function connect(server: TestServer): Promise<Reader> {
  const socket = createConnection({ host: "127.0.0.1", port: server.port });
  onTestFinished(() => void socket.destroy());
  const reader: Reader = { socket, received: 0, isReset: false, isEnded: false };
  socket.on("error", () => {
    reader.isReset = true;
  });
  socket.on("end", () => {
    reader.isEnded = true;
  });
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.pause();
  return reader;
}

const asks = head({}, "GET /static/array.js");

test("unread answers are dropped at a deadline", async () => {
  await Promise.all([expectUnreadReset(), expectResetOfOneThatAsksOn(), expectSlowReadersServed()]);
});

async function expectUnreadReset(): Promise<void> {
  const server = await start();
  const readers = await Promise.all(Array.from({ length: 5 }, () => connect(server)));
  for (const { socket } of readers) socket.write(asks);
  const { unread } = server.http;
  await until(() => (unread?.bytes ?? 0) > 0, "it is counted");
  expect(unread!.bytes / readers.length).toBeLessThan(400_000);
  const deadlineMs = performance.now() + 45_000;
  while (server.http.connections.open > 0) {
    if (performance.now() > deadlineMs) throw new Error("Wait for the resets: still open");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(unread!.reset).toBe(5);
  await until(() => unread!.bytes === 0, "nothing is counted");
  for (const { socket } of readers) socket.resume();
  await until(
    () => readers.every(({ isReset, isEnded }) => isReset || isEnded),
    "they see that it is over",
  );
}

async function expectResetOfOneThatAsksOn(): Promise<void> {
  const server = await start();
  const { socket } = await connect(server);
  await until(() => server.http.connections.open === 1, "the connection is open");
  const deadlineMs = performance.now() + 14_000;
  while (server.http.connections.open > 0) {
    expect(performance.now()).toBeLessThan(deadlineMs);
    for (let more = 0; more < 20; more++) socket.write(post("{}"));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function expectSlowReadersServed(): Promise<void> {
  const server = await start();
  const late = await connect(server);
  const slow = await connect(server);
  for (const reader of [late, slow]) {
    reader.socket.on("data", (chunk) => {
      reader.received += chunk.length;
    });
    reader.socket.pause();
    reader.socket.write(asks);
  }
  slow.socket.on("data", () => {
    slow.socket.pause();
    setTimeout(() => slow.socket.resume(), 80);
  });
  setTimeout(() => late.socket.resume(), 13_000);
  slow.socket.resume();
  const deadlineMs = performance.now() + 50_000;
  while (!late.isEnded || !slow.isEnded) {
    if (performance.now() > deadlineMs) throw new Error("Wait for the answers: not whole");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (const { received, isReset } of [late, slow]) {
    expect(received).toBeGreaterThan(script.length);
    expect(isReset).toBe(false);
  }
  expect(server.http.unread.reset).toBe(0);
}
