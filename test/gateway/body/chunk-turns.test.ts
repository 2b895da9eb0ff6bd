// Chunks are taken one by one, however little is in them, and large pieces take the time to keep
// them, so what comes of bodies in one turn of the event loop is bounded for all together. Counted
// in chunks, turns and a clock of our own.

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
  /** As the system tells of them: one that is read again comes behind the others. */
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

  /** Each connection that is read has so many chunks to bring. */
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

  /** Each connection that is read has one large piece to bring, which takes so long. */
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
  /** Ends a turn that was too long; the next bodies are read in the one that begins. */
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

describe("chunks have a share of a turn", () => {
  test("bodies with few chunks are all read in each turn", () => {
    const kit = new Kit();
    for (let turn = 0; turn < 3; turn++) {
      expect(kit.turn(1_000)).toEqual({ a: 1_000, b: 1_000, c: 1_000, d: 1_000 });
    }
  });

  test("bodies with many chunks have a turn each, one after the other", () => {
    const kit = new Kit();
    const read = Array.from({ length: 6 }, () => kit.turn(chunksPerTurn));
    expect(read).toEqual([..."abcdab"].map((name) => ({ [name]: chunksPerTurn })));
  });

  test("a turn is over for all when one goes on and on", () => {
    const chunks = new ChunkTurns<Body>({ nextTurn: () => {}, workMs: () => 0 });
    const body: Body = { name: "a", pauseReading: () => {}, resumeReading: () => {} };
    for (let count = 0; count < chunksPerTurnMax; count++) chunks.count(body);
    expect(chunks.isOver).toBe(false);
    chunks.count(body);
    expect(chunks.isOver).toBe(true);
  });

  test("large pieces are read for some milliseconds a turn, the bodies one after the other", () => {
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

  test("of many that wait some go on a turn, and all of them in the end", () => {
    const { paused, spendTurn, endTurn, isIdle } = manyBodies(3 * resumedPerTurnMax);
    spendTurn();
    expect(paused.size).toBe(3 * resumedPerTurnMax - 1);
    const left = [1, 2, 3].map(() => {
      endTurn();
      return paused.size;
    });
    // Who has spent the turn waits from its end on.
    expect(left).toEqual([2 * resumedPerTurnMax, resumedPerTurnMax, 0]);
    expect(isIdle()).toBe(true);
  });

  test("one that begins when the turn has had its share waits too", () => {
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

  test("one that is whole is read again when it is answered, and never when it is gone", () => {
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
