import { describe, expect, test } from "vitest";
import { loadConnectionAddon } from "../../../../src/gateway/http/client/connection-id.ts";
import {
  connectTo,
  post,
  startTestServer,
  type TestServer,
  until,
  type Wire,
} from "../../../kit/http-server.ts";

const requestsEach = 50;
const generations = 60;
const openAtATime = 5;

describe("the address of a request", () => {
  test("is correct for two alternating connections", async () => {
    const server = await startTestServer({ recordIp: true });
    const first = await connectTo(server, "127.0.0.1", "127.0.0.1");
    const second = await connectTo(server, "127.0.0.1", "127.0.0.2");
    for (let request = 0; request < requestsEach; request++) {
      expect(await addressSeen(server, first)).toBe("127.0.0.1");
      expect(await addressSeen(server, second)).toBe("127.0.0.2");
    }
  });

  test("is correct for pipelined requests of two connections", async () => {
    const server = await startTestServer({ recordIp: true });
    const sent = Array.from({ length: requestsEach }, (_, number) => number);
    const froms = ["127.0.0.1", "127.0.0.2"];
    await Promise.all(
      froms.map(async (from) => {
        const wire = await connectTo(server, "127.0.0.1", from);
        for (const number of sent) wire.write(post(`${from} ${number}`));
        for (const _ of sent) expect((await wire.reply()).status).toBe(200);
      }),
    );
    expect(server.taken.length).toBe(sent.length * froms.length);
    for (const { exchange, text } of server.taken)
      expect(text.split(" ")[0]).toBe(exchange.clientAddress);
  });

  test("is correct if connection ids are reused later", async () => {
    const { connectionId } = loadConnectionAddon();
    const ids: number[] = [];
    const noting = (response: object) => {
      const id = connectionId(response);
      ids.push(id);
      return id;
    };
    const server = await startTestServer({ recordIp: true, connectionId: noting });
    for (let generation = 0; generation < generations; generation++) {
      const froms = Array.from(
        { length: openAtATime },
        (_, place) => `127.0.${generation + 1}.${place + 1}`,
      );
      const wires = await Promise.all(froms.map((from) => connectTo(server, "127.0.0.1", from)));
      for (const [place, from] of froms.entries())
        expect(await addressSeen(server, wires[place]!)).toBe(from);
      for (const [place, { socket }] of wires.entries())
        place % 2 === 0 ? socket.end() : socket.resetAndDestroy();
      await until(() => wires.every((wire) => wire.closed()), "the connections are closed");
    }
    // Without reused ids, this test would check nothing.
    expect(new Set(ids).size).toBeLessThan(generations * openAtATime);
  });
});

async function addressSeen(server: TestServer, wire: Wire): Promise<string | undefined> {
  wire.write(post("{}"));
  expect((await wire.reply()).status).toBe(200);
  return server.taken.at(-1)?.exchange.clientAddress;
}
