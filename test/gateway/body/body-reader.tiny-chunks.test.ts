// Every chunk costs the same CPU, whatever its size, so the number of chunks is limited too.

import { createConnection, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  event,
  expectUnharmed,
  raw,
  request,
  startTarget,
  statusesIn,
  stored,
  type Target,
} from "../../kit/hostile.ts";

function inChunksOf(chunkBytes: number, body: string): Buffer {
  const chunks = body.match(new RegExp(`.{1,${chunkBytes}}`, "gs")) ?? [];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
  return request(`${framed}0\r\n\r\n`, ["Transfer-Encoding: chunked"]);
}

const long = (id: string, bytes: number): string =>
  event(id).replace("{", `{"padding":"${"x".repeat(bytes)}",`);

describe("bodies in tiny chunks", () => {
  test("are stored if they are few or not too small", async () => {
    const target = await startTarget();
    for (const [id, bytes] of [
      ["by bytes", inChunksOf(1, event("by bytes"))],
      ["by dozens", inChunksOf(48, long("by dozens", 200_000))],
    ] as const) {
      expect((await raw(target.port, [bytes])).statuses, id).toEqual([200]);
    }
    expect((await stored(target)).toSorted()).toEqual(["by bytes", "by dozens", "first"]);
    await expectUnharmed(target);
  });

  test("are rejected with 400 at 3,000 chunks", async () => {
    const target = await startTarget();
    for (const chunkBytes of [1, 8]) {
      const tiny = inChunksOf(chunkBytes, long("tiny", 3_000 * chunkBytes));
      expect((await raw(target.port, [tiny])).statuses).toEqual([400]);
      const behind = request(event("behind"));
      expect((await raw(target.port, [Buffer.concat([tiny, behind])])).statuses).not.toContain(200);
    }
    expect(await stored(target)).toEqual(["first"]);
    await expectUnharmed(target);
  });

  test("close the connection if too many chunks arrive in one turn", async () => {
    const target = await startTarget();
    const sent = inChunksOf(1, long("tiny", 18_000));
    const socket = await whileStopped(target, () => begun(target.port, sent));
    expect(await statusesOf(socket)).toEqual([]);
    expect(await stored(target)).toEqual(["first"]);
    await expectUnharmed(target);
  });

  const many = 24;
  const chunksEach = 1_000;

  test("are read over several turns of the event loop", async () => {
    const target = await startTarget();
    const bodies = Array.from({ length: many }, (_, index) =>
      inChunksOf(40, long(`n${index}`, 40 * chunksEach)),
    );
    const sockets = await Promise.all(
      bodies.map((body) => begun(target.port, body.subarray(0, 200))),
    );
    expect((await raw(target.port, [request(event("between"))])).statuses).toEqual([200]);
    await whileStopped(target, async () => {
      await Promise.all(
        sockets.map((socket, index) => written(socket, bodies[index]!.subarray(200))),
      );
    });
    const answers = await Promise.all(sockets.map(statusesOf));
    expect(answers).toEqual(bodies.map(() => [200]));
    await expectUnharmed(target);
  });

  test("wait for the next turn if the current one has no time left", async () => {
    const target = await startTarget();
    const bodies = Array.from({ length: many }, (_, index) =>
      inChunksOf(40, long(`n${index}`, 40 * chunksEach)),
    );
    const sockets = await whileStopped(target, () =>
      Promise.all(bodies.map((body) => begun(target.port, body))),
    );
    const answers = await Promise.all(sockets.map(statusesOf));
    const turnedAway = answers.findIndex((statuses) => statuses.length === 0);
    expect(answers.filter((statuses) => statuses.length > 0).flat()).toContain(200);
    expect(turnedAway).toBeGreaterThanOrEqual(0);
    expect((await raw(target.port, [bodies[turnedAway]!])).statuses).toEqual([200]);
    await expectUnharmed(target);
  });
});

async function begun(port: number, bytes: Buffer): Promise<Socket> {
  const socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  await written(socket, bytes);
  return socket;
}

function written(socket: Socket, bytes: Buffer): Promise<unknown> {
  return new Promise((resolve) => socket.write(bytes, resolve));
}

async function whileStopped<T>({ pid }: Target, act: () => Promise<T>): Promise<T> {
  process.kill(pid, "SIGSTOP");
  try {
    return await act();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

function statusesOf(socket: Socket): Promise<number[]> {
  return new Promise((resolve) => {
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("close", () => resolve(statusesIn(text)));
  });
}
