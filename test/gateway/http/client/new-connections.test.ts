import { describe, expect, test } from "vitest";
import { signatureMs } from "../../../../src/gateway/http/certificate.ts";
import {
  handshakesPerTurn,
  type NewConnection,
  NewConnections,
  readPerTurnMax,
} from "../../../../src/gateway/http/client/new-connections.ts";
import { connectTo, post, startTestServer, until, type Wire } from "../../../kit/http-server.ts";

class Kit {
  readonly #turns: (() => void)[] = [];
  readonly connections = new NewConnections<NewConnection>((run) => this.#turns.push(run));
  paused: number[] = [];
  resumed: number[] = [];

  open(id: number, address = "192.0.2.1"): void {
    const connection = {
      pause: () => void this.paused.push(id),
      resume: () => void this.resumed.push(id),
      close: () => {},
    };
    this.connections.opened(connection, { id, address });
  }

  turn(): number[] {
    for (const run of this.#turns.splice(0)) run();
    return this.resumed.splice(0);
  }

  get isIdle(): boolean {
    return this.#turns.length === 0;
  }
}

const range = (start: number, end: number): number[] =>
  Array.from({ length: end - start }, (_, index) => start + index);

const inOrder = (ids: readonly number[]): number[] => ids.toSorted((left, right) => left - right);

describe("the queue of new connections", () => {
  test("reads a few connections immediately and many at a fixed rate", () => {
    const kit = new Kit();
    const half = readPerTurnMax / 2;
    const [first, last] = [readPerTurnMax, 3 * readPerTurnMax - 4];
    for (const id of range(0, last)) kit.open(id);
    expect(kit.paused).toEqual(range(first, last));
    expect(inOrder(kit.turn())).toEqual([
      ...range(first, first + half),
      ...range(last - half, last),
    ]);
    expect(inOrder(kit.turn())).toEqual(range(first + half, last - half));
    for (const id of range(1_000, 1_005)) kit.open(id);
    expect(kit.paused.at(-1)).toBe(1_004);
    expect(kit.turn()).toEqual([1_004]);
    kit.turn();
    expect(kit.isIdle).toBe(true);
    expect(kit.connections.size).toBe(0);
  });

  test("does not delay one address while another has many connections", () => {
    const kit = new Kit();
    for (const id of range(0, 10 * readPerTurnMax)) kit.open(id);
    kit.open(9_001, "192.0.2.2");
    kit.open(9_002, "192.0.2.2");
    const next = kit.turn();
    expect(next).toHaveLength(readPerTurnMax);
    expect(next.slice(0, 5).filter((id) => id > 9_000)).toEqual([9_001, 9_002]);
  });

  test("starts at most one TLS handshake per turn", () => {
    expect(handshakesPerTurn(0)).toBe(1);
    expect(handshakesPerTurn(2.5)).toBe(1);
    expect(handshakesPerTurn(5)).toBe(0.5);
    const kit = new Kit();
    kit.connections.perTurn = handshakesPerTurn(5);
    for (const id of range(0, 8)) kit.open(id);
    kit.open(9_001, "192.0.2.2");
    expect(kit.paused).toEqual([...range(1, 8), 9_001]);
    expect(Array.from({ length: 8 }, () => kit.turn())).toEqual([
      [],
      [1],
      [],
      [9_001],
      [],
      [7],
      [],
      [2],
    ]);
  });

  test("resumes all connections even if a signature never completes", () => {
    const kit = new Kit();
    kit.connections.perTurn = handshakesPerTurn(Number.POSITIVE_INFINITY);
    for (const id of range(0, 3)) kit.open(id);
    const resumed = Array.from({ length: 160 }, () => kit.turn()).flat();
    expect(inOrder(resumed)).toEqual([1, 2]);
    expect(kit.isIdle).toBe(true);
  });

  test("starts one handshake per turn if the key cannot be read", () => {
    const ms = signatureMs("/there/is/no/such.key");
    expect(handshakesPerTurn(ms)).toBe(1);
  });

  test("does not resume a connection that closed while it waited", () => {
    const kit = new Kit();
    for (const id of range(0, readPerTurnMax + 3)) kit.open(id);
    kit.connections.closed(readPerTurnMax + 1);
    kit.connections.closed(0);
    expect(kit.turn()).toEqual([readPerTurnMax, readPerTurnMax + 2]);
  });

  test("answers hundreds of connections that open together", async () => {
    const server = await startTestServer();
    const opening = range(0, 300).map(async (number) => {
      const wire = await connectTo(server);
      if (number % 3 === 0) wire.socket.destroy();
      else wire.write(post("x".repeat(20_000)));
      return wire;
    });
    const wires: Wire[] = await Promise.all(opening);
    const staying = wires.filter((wire) => !wire.socket.destroyed);
    expect(staying).toHaveLength(200);
    for (const wire of staying) expect((await wire.reply()).status).toBe(200);
    await until(() => server.http.connections.open === staying.length, "the others are gone");
  });
});
