import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BodyBuffer, capacityFor } from "../../../src/gateway/body/body-buffer.ts";
import { BodyMemory } from "../../../src/gateway/body/body-memory.ts";
import { bodyBytesMax, connectTo, head, startTestServer, until } from "../../kit/http-server.ts";

const MIB = 1_048_576;

describe("headers reserve no memory", () => {
  test.each([
    ["what is declared, when it is small", 100, 500, 500],
    ["four times what is there, of a large declaration", 100_000, 1_000 * MIB, 400_000],
    ["a minimum, when almost nothing is there", 1, 1_000 * MIB, 16_384],
    ["what is declared, near the end", 900_000, MIB, MIB],
    ["twice what is there, without a hint", MIB, undefined, 2 * MIB],
    ["twice what is there, when the hint was too low", MIB, 10, 2 * MIB],
    [
      "sixteen times what is there, of a large declaration, when 1 MiB is",
      MIB,
      1_000 * MIB,
      16 * MIB,
    ],
  ])("room for %s", (_, needed, hint, capacity) => {
    expect(capacityFor(needed, hint)).toBe(capacity);
  });

  test("a buffer never has more room than four times its bytes, and ends at the size declared", () => {
    const bytes = Buffer.from(Array.from({ length: 500_000 }, (_, at) => at % 251));
    const memory = new BodyMemory();
    const buffer = new BodyBuffer(memory, bytes.length);
    for (let at = 0; at < bytes.length; at += 1_777) {
      buffer.append(bytes.subarray(at, at + 1_777));
      expect(buffer.capacity).toBeLessThanOrEqual(Math.max(16_384, 4 * buffer.length));
    }
    expect(buffer.capacity).toBe(bytes.length);
    expect(buffer.bytes().equals(bytes)).toBe(true);
    buffer.free();
    expect([buffer.length, buffer.capacity, buffer.bytes().length]).toEqual([0, 0, 0]);
  });

  test.each([
    ["no hint", undefined],
    ["the right hint", 50 * MIB],
    ["a hint that is too low", 9 * MIB],
    ["a hint that is too high", 500 * MIB],
  ])(
    "a large body with %s is copied 4 MiB a turn at most, and is whole in the end",
    async (_, hint) => {
      let turn = 0;
      const copiedIn = new Map<number, number>();
      const set = Uint8Array.prototype.set;
      const spy = vi.spyOn(Uint8Array.prototype, "set").mockImplementation(function (
        this: Uint8Array,
        ...given
      ) {
        copiedIn.set(turn, (copiedIn.get(turn) ?? 0) + given[0].length);
        set.apply(this, given);
      });
      onTestFinished(() => spy.mockRestore());
      const nextTurn = async () => void turn++;
      const memory = new BodyMemory();
      const buffer = new BodyBuffer(memory, hint);
      const piece = Buffer.alloc(MIB);
      for (let n = 0; n < 50; n++) {
        buffer.append(piece.fill(n + 1));
        turn++;
      }
      expect(buffer.isInOnePiece).toBe(false);
      await buffer.join(nextTurn);
      const body = buffer.bytes();
      expect(body.length).toBe(50 * MIB);
      for (let n = 0; n < 50; n++)
        expect([body[n * MIB], body[(n + 1) * MIB - 1]]).toEqual([n + 1, n + 1]);
      expect(Math.max(...copiedIn.values())).toBeLessThanOrEqual(6 * MIB);
      buffer.free();
      expect([buffer.length, buffer.capacity]).toEqual([0, 0]);
    },
  );

  test("a body of the default cap grows by small copies and needs no joining", () => {
    const buffer = new BodyBuffer(new BodyMemory(), 20 * MIB);
    const piece = Buffer.alloc(MIB / 2);
    for (let n = 0; n < 40; n++) buffer.append(piece);
    expect([buffer.isInOnePiece, buffer.capacity]).toEqual([true, 20 * MIB]);
  });

  test("five hundred clients that promise the cap and send a byte hold a byte each", async () => {
    const server = await startTestServer();
    const before = process.memoryUsage().rss;
    const wires = await Promise.all(Array.from({ length: 500 }, () => connectTo(server)));
    for (const wire of wires)
      wire.write(
        Buffer.concat([head({ "Content-Length": String(bodyBytesMax) }), Buffer.from("x")]),
      );
    await until(() => server.admission.bytes === 500, "every byte is in hand");
    expect(process.memoryUsage().rss - before).toBeLessThan(40 * MIB);
    for (const wire of wires) wire.socket.destroy();
    await until(() => server.aborted.length === 500, "every request is given up");
  });
});
