import { describe, expect, test } from "vitest";
import {
  ChunkTurns,
  chunksPerTurn,
  chunksPerTurnMax,
  readMsPerTurn,
  resumedPerTurnMax,
} from "../../../src/gateway/body/chunk-turns.ts";

interface Body {
  readonly name: string;
  pauseReading(): void;
  resumeReading(): void;
}

class Kit {
  readonly #readable: Body[] = [];
  readonly #turns: (() => void)[] = [];
  #workMs = 0;
  readonly #chunks = new ChunkTurns<Body>({
    nextTurn: (run) => this.#turns.push(run),
    workMs: () => this.#workMs,
  });

  constructor() {
    for (const name of "abcd") {
      const pauseReading = (): void => {
        if (this.#readable.includes(body)) this.#readable.splice(this.#readable.indexOf(body), 1);
      };
      const resumeReading = (): void => {
        if (!this.#readable.includes(body)) this.#readable.push(body);
      };
      const body: Body = { name, pauseReading, resumeReading };
      this.#chunks.add(body);
      this.#readable.push(body);
    }
  }

  turn(chunks: number): Record<string, number> {
    const read: Record<string, number> = {};
    for (const body of [...this.#readable]) {
      for (let left = chunks; left > 0 && this.#readable.includes(body); left--) {
        this.#chunks.count(body);
        read[body.name] = (read[body.name] ?? 0) + 1;
      }
    }
    this.#endTurn();
    return read;
  }

  turnOfPieces(ms: number): string {
    let read = "";
    for (const body of [...this.#readable]) {
      if (!this.#readable.includes(body)) continue;
      this.#chunks.countLarge(body);
      this.#workMs += ms;
      read += body.name;
    }
    this.#endTurn();
    return read;
  }

  #endTurn(): void {
    for (const run of this.#turns.splice(0)) run();
  }
}

function manyBodies(count: number) {
  const turns: (() => void)[] = [];
  let workMs = 0;
  const paused = new Set<number>();
  const chunks = new ChunkTurns({ nextTurn: (run) => turns.push(run), workMs: () => workMs });
  const bodies = Array.from({ length: count }, (_, index) => ({
    pauseReading: () => void paused.add(index),
    resumeReading: () => void paused.delete(index),
  }));
  for (const body of bodies) chunks.add(body);
  function spendTurn(): void {
    chunks.countLarge(bodies[0]!);
    workMs += readMsPerTurn + 1;
    chunks.countLarge(bodies[0]!);
  }
  function endTurn(): void {
    for (const run of turns.splice(0)) run();
  }
  return { chunks, bodies, paused, spendTurn, endTurn, isIdle: () => turns.length === 0 };
}

describe("the chunk limit of an event loop turn", () => {
  test("does not delay bodies with few chunks", () => {
    const kit = new Kit();
    for (let turn = 0; turn < 3; turn++) {
      expect(kit.turn(1_000)).toEqual({ a: 1_000, b: 1_000, c: 1_000, d: 1_000 });
    }
  });

  test("lets bodies with many chunks proceed one per turn", () => {
    const kit = new Kit();
    const read = Array.from({ length: 6 }, () => kit.turn(chunksPerTurn));
    expect(read).toEqual([..."abcdab"].map((name) => ({ [name]: chunksPerTurn })));
  });

  test("pauses all bodies if one sends too many chunks", () => {
    const chunks = new ChunkTurns<Body>({ nextTurn: () => {}, workMs: () => 0 });
    const body: Body = { name: "a", pauseReading: () => {}, resumeReading: () => {} };
    for (let count = 0; count < chunksPerTurnMax; count++) chunks.count(body);
    expect(chunks.isOver).toBe(false);
    chunks.count(body);
    expect(chunks.isOver).toBe(true);
  });

  test("limits the time for bodies with large pieces", () => {
    const kit = new Kit();
    expect(kit.turnOfPieces(1)).toBe("abcd");
    const ms = readMsPerTurn * 0.6;
    expect(Array.from({ length: 4 }, () => kit.turnOfPieces(ms))).toEqual([
      "abc",
      "dab",
      "cda",
      "bcd",
    ]);
  });

  test("resumes a limited number of waiting bodies per turn", () => {
    const { paused, spendTurn, endTurn, isIdle } = manyBodies(3 * resumedPerTurnMax);
    spendTurn();
    expect(paused.size).toBe(3 * resumedPerTurnMax - 1);
    const left = [1, 2, 3].map(() => {
      endTurn();
      return paused.size;
    });
    expect(left).toEqual([2 * resumedPerTurnMax, resumedPerTurnMax, 0]);
    expect(isIdle()).toBe(true);
  });

  test("pauses a body that begins after the limit is reached", () => {
    const { chunks, spendTurn, endTurn } = manyBodies(1);
    let isPaused = false;
    const late = {
      pauseReading() {
        isPaused = true;
      },
      resumeReading() {
        isPaused = false;
      },
    };
    spendTurn();
    chunks.add(late);
    expect(isPaused).toBe(true);
    endTurn();
    expect(isPaused).toBe(false);
  });

  test("resumes a complete body when it is answered", () => {
    const { chunks, bodies, paused, spendTurn, endTurn, isIdle } = manyBodies(4);
    spendTurn();
    chunks.whole(bodies[1]!);
    chunks.whole(bodies[2]!);
    chunks.gone(bodies[3]!);
    for (let turn = 0; turn < 3; turn++) endTurn();
    expect(isIdle()).toBe(true);
    expect([...paused]).toEqual([1, 2, 3]);
    chunks.answered(bodies[1]!);
    chunks.gone(bodies[2]!);
    expect([...paused]).toEqual([2, 3]);
  });
});
