import { once } from "node:events";
import { createConnection } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { Waits } from "../../../../src/readers/effects/http/waits.ts";
import { Reached } from "../../../../src/readers/effects/writer/progress.ts";
import { ada, applied, effectsHttp, openEffectsHttp, readerOf } from "./reader-kit.ts";

const live = "PENSTOCK_LIVE_0";
const historical = "PENSTOCK_HISTORICAL_0";

test("a request with wait_for waits for every stream that it names", async () => {
  let [liveAt, historicalAt] = [1, 1];
  const reader = readerOf({
    applied: async () => [applied(live, liveAt), applied(historical, historicalAt)],
    personByDistinctId: async () => ada,
  });
  const url = await effectsHttp(reader);
  let isAnswered = false;
  const answer = fetch(
    `${url}/projects/shop/persons?distinct_id=ada&wait_for=${live}:5&wait_for=${historical}:2&wait_for=${live}:3`,
  ).then(async (response) => {
    isAnswered = true;
    return (await response.json()) as { as_of: object };
  });
  liveAt = 5;
  expect((await fetch(`${url}/projects/shop/persons?distinct_id=ada`)).status).toBe(200);
  expect(isAnswered).toBe(false);
  historicalAt = 3;
  expect((await answer).as_of).toEqual({ [live]: 5, [historical]: 3 });
});

test("a request that waits too long is answered 504", async () => {
  const url = await effectsHttp(readerOf({ applied: async () => [applied(live, 1)] }), {
    waitMsMax: 30,
  });
  const answer = await fetch(`${url}/projects/shop/persons?distinct_id=ada&wait_for=${live}:2`);
  expect(answer.status).toBe(504);
  expect(await answer.json()).toMatchObject({ code: "wait_timed_out" });
});

test("the number of waiting requests is limited", async () => {
  let asked = 0;
  const waits = new Waits({
    applied: async () => {
      asked += 1;
      return [];
    },
    timeoutMs: 60_000,
    waitsMax: 1,
  });
  const gone = new AbortController();
  const first = waits.until(new Map([[live, 1]]), gone.signal);
  await expect.poll(() => waits.waiting).toBe(1);
  expect(await waits.until(new Map([[live, 1]]), new AbortController().signal)).toBe("too many");
  gone.abort(new Error("gone"));
  await expect(first).rejects.toThrow("gone");
  expect(waits.waiting).toBe(0);
  const askedThen = asked;
  expect(await waits.until(new Map([[live, 0]]), new AbortController().signal)).toBe("applied");
  expect(asked).toBeLessThanOrEqual(askedThen + 2);
});

test("a waiting request reads the database after a local writer's commit", async () => {
  let asked = 0;
  let at = 1;
  const committed = Promise.withResolvers<void>();
  const ask = (timeoutMs: number): Promise<string> => {
    const reader = async () => {
      asked += 1;
      return [applied(live, at)];
    };
    const written = () => committed.promise;
    const waits = new Waits({ applied: reader, written, timeoutMs, waitsMax: 1 });
    return waits.until(new Map([[live, 2]]), new AbortController().signal);
  };
  expect(await ask(60)).toBe("timed out");
  expect(asked).toBe(1);
  const outcome = ask(60_000);
  await expect.poll(() => asked).toBe(2);
  at = 2;
  committed.resolve();
  expect(await outcome).toBe("applied");
  expect(asked).toBe(3);
});

test("a waiting request polls a database that lags or has no writer", async () => {
  const ended = async (): Promise<void> => {
    throw new Error("the writer has ended");
  };
  for (const written of [async () => {}, ended]) {
    let asked = 0;
    const waits = new Waits({
      applied: async () => [applied(live, ++asked)],
      written,
      timeoutMs: 60_000,
      waitsMax: 1,
    });
    const { signal } = new AbortController();
    expect(await waits.until(new Map([[live, 4]]), signal)).toBe("applied");
    expect(asked).toBe(4);
  }
});

test("a request that waited for a writer leaves nothing in memory", async () => {
  const reached = new Reached();
  const waits = new Waits({
    applied: async () => [],
    written: (wanted, signal) =>
      Promise.all([...wanted].map(([stream, to]) => reached.until(stream, to, signal))),
    timeoutMs: 5,
    waitsMax: 1,
  });
  const wanted = new Map([
    [live, 1],
    [historical, 1],
  ]);
  expect(await waits.until(wanted, new AbortController().signal)).toBe("timed out");
  expect([waits.waiting, reached.waiting]).toEqual([0, 0]);
});

test("a client that does not read its answer is disconnected", async () => {
  const text = JSON.stringify("x".repeat(30_000_000));
  const reader = readerOf({
    personByDistinctId: async () => ({ ...ada, propertiesJson: `{"text":${text}}` }),
  });
  const url = new URL(
    await effectsHttp(reader, { answerMsMax: 1_500, answerBytesMax: 40_000_000 }),
  );
  const path = "/projects/shop/persons?distinct_id=ada";
  const slow = createConnection(Number(url.port), "127.0.0.1").pause();
  slow.on("error", () => {});
  slow.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await expect.poll(async () => (await fetch(new URL(path, url))).status).toBe(503);
  await expect
    .poll(async () => (await fetch(new URL(path, url))).status, { timeout: 10_000 })
    .toBe(200);
  slow.resume();
  await once(slow, "close");
});

test("an answered request leaves nothing in memory", async () => {
  // A signal derived from a signal of the port would never be freed.
  const any = vi.spyOn(AbortSignal, "any");
  onTestFinished(() => any.mockRestore());
  const { url, http } = await openEffectsHttp(readerOf({}));
  const port = Number(new URL(url).port);
  const socket = createConnection(port, "127.0.0.1");
  const one = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  let answers = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    answers += text;
  });
  for (let sent = 0; sent < 1_000; sent++) {
    answers = "";
    socket.write(one);
    while (!answers.includes('"alive"')) await once(socket, "data");
  }
  await expect.poll(() => http.requests).toBe(0);
  expect(any).not.toHaveBeenCalled();
  socket.destroy();
});

test("a waiting request ends when the port closes", async () => {
  const { url, http } = await openEffectsHttp(readerOf({ applied: async () => [] }));
  const port = Number(new URL(url).port);
  const socket = createConnection(port, "127.0.0.1");
  const path = `/projects/shop/persons?distinct_id=ada&wait_for=${live}:2`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await expect.poll(() => http.waits).toBe(1);
  await Promise.all([http.close(), once(socket, "close")]);
  await expect.poll(() => http.waits).toBe(0);
});

test("pipelined requests end when their connection ends", async () => {
  const { url, http } = await openEffectsHttp(readerOf({ applied: async () => [] }));
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1").resume();
  socket.on("error", () => {});
  socket.write(`GET /projects/shop/usage?wait_for=${live}:2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await expect.poll(() => http.waits).toBe(1);
  socket.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(300));
  socket.destroySoon();
  await expect.poll(() => http.requests).toBe(0);
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
});
