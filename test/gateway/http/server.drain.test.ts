import { describe, expect, test } from "vitest";
import {
  codeIn,
  connectTo,
  head,
  heldRequest,
  oneStored,
  post,
  startTestServer,
  until,
  untilItListensNoMore,
} from "../../kit/http-server.ts";

describe("a draining server", () => {
  test("answers requests in flight and rejects later requests", async () => {
    const server = await startTestServer();
    server.answer = () => {};
    const [waiting, sending, idle] = [
      await connectTo(server),
      await connectTo(server),
      await connectTo(server),
    ];
    waiting.write(post("{}"));
    sending.write(Buffer.concat([head({ "Content-Length": "2" }), Buffer.from("{")]));
    await until(
      () => server.http.inflight() === 2 && server.taken.length === 1,
      "two are in flight",
    );

    let left: number | undefined;
    void server.http.drain(5_000).then((inflight) => {
      left = inflight;
    });
    await untilItListensNoMore();
    await expect(fetch(`${server.url}/capture/`, { method: "POST", body: "{}" })).rejects.toThrow();
    idle.write(post("{}"));
    const refused = await idle.reply();
    expect([refused.status, codeIn(refused), refused.headers.get("connection")]).toEqual([
      503,
      "draining",
      "close",
    ]);
    await idle.ended();

    sending.write("}");
    await until(() => server.taken.length === 2, "the body begun before is taken");
    expect(left).toBeUndefined();
    for (const { exchange } of server.taken) exchange.answerStored(oneStored);
    for (const wire of [waiting, sending]) {
      const reply = await wire.reply();
      expect([reply.status, reply.headers.get("connection")]).toEqual([200, "close"]);
    }
    await until(() => left === 0, "it is drained");
  });

  test("answers a request that arrives on an idle open connection", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    let isDrained = false;
    const drained = server.http.drain(5_000).then((inflight) => {
      isDrained = true;
      return inflight;
    });
    await new Promise(setImmediate);
    expect(isDrained).toBe(false);
    wire.write(post("{}"));
    expect(codeIn(await wire.reply())).toBe("draining");
    expect(await drained).toBe(0);
  });

  test("waits for slow clients whose requests follow each other closely", async () => {
    let nowMs = 0;
    const server = await startTestServer({ monotonicMs: () => nowMs });
    const wires = await Promise.all(Array.from({ length: 5 }, () => connectTo(server)));
    const drained = server.http.drain(5_000).then((inflight) => {
      server.http.close();
      return inflight;
    });
    for (const wire of wires) {
      wire.write(post("{}"));
      expect(codeIn(await wire.reply())).toBe("draining");
      nowMs += 60;
      // A drain that does not count the requests would end in this time.
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
    nowMs += 100;
    expect(await drained).toBe(0);
  });

  test("reads a request that arrived while the process was paused", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    const drained = server.http.drain(5_000).then(() => server.http.close());
    await untilItListensNoMore();
    wire.write(post("{}"));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    expect(codeIn(await wire.reply())).toBe("draining");
    await drained;
  });

  test("accepts a connection that was opened before the drain", async () => {
    const server = await startTestServer();
    const connecting = connectTo(server);
    await new Promise((resolve) => process.nextTick(resolve));
    const drained = server.http.drain(5_000);
    const wire = await connecting;
    wire.write(post("{}"));
    expect(codeIn(await wire.reply())).toBe("draining");
    expect(await drained).toBe(0);
  });

  test("reports the number of unanswered requests at its deadline", async () => {
    const { server, wire } = await heldRequest();
    expect(await server.http.drain(20)).toBe(1);
    server.taken[0]!.exchange.answerStored(oneStored);
    expect((await wire.reply()).status).toBe(200);
  });

  test("closes every connection when it stops", async () => {
    const { server, wire } = await heldRequest();
    server.http.close();
    await wire.ended();
    expect(server.aborted).toEqual(["answer"]);
    server.taken[0]!.exchange.answerStored(oneStored);
  });
});
