import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BodyBuffer, BodyMemory, capacityFor } from "../../../src/gateway/body/body-buffer.ts";
import { bodyBytesMax, connectTo, head, startTestServer, until } from "../../kit/http-server.ts";

const MIB = 1_048_576;

describe("the buffer of a body", () => {
  test.each([
    ["the declared length if that is small", 100, 500, 500],
    [
      "four times the received bytes if the declared length is large",
      100_000,
      1_000 * MIB,
      400_000,
    ],
    ["16 KiB if almost nothing has arrived", 1, 1_000 * MIB, 16_384],
    ["the declared length when most of the body has arrived", 900_000, MIB, MIB],
    ["twice the received bytes if no length is declared", MIB, undefined, 2 * MIB],
    ["twice the received bytes if more arrives than declared", MIB, 10, 2 * MIB],
    ["16 times the received bytes after 1 MiB of a large body", MIB, 1_000 * MIB, 16 * MIB],
  ])("allocates room for %s", (_, needed, hint, capacity) => {
    expect(capacityFor(needed, hint)).toBe(capacity);
  });

  test("holds at most four times the received bytes while it grows", () => {
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
    ["no declared length", undefined],
    ["the correct declared length", 50 * MIB],
    ["a declared length that is too low", 9 * MIB],
    ["a declared length that is too high", 500 * MIB],
  ])("copies a large body over several turns of the event loop, with %s", async (_, hint) => {
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
  });

  test("grows in one block up to the default size limit", () => {
    const buffer = new BodyBuffer(new BodyMemory(), 20 * MIB);
    const piece = Buffer.alloc(MIB / 2);
    for (let n = 0; n < 40; n++) buffer.append(piece);
    expect([buffer.isInOnePiece, buffer.capacity]).toEqual([true, 20 * MIB]);
  });

  test("uses little memory for 500 clients that declare the maximum", async () => {
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
