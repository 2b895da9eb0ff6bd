// Chunks are taken one by one, however little is in them, so what comes of them in one turn of the
// event loop is bounded for all bodies together. Counted in chunks and turns.

import { describe, expect, test } from "vitest";
import { ChunkTurns, chunksPerTurn, chunksPerTurnMax } from "../../../src/http/body/chunk-turns.ts";

interface Body {
  readonly name: string;
  pauseReading(): void;
  resumeReading(): void;
}

class Kit {
  /** As the system tells of them: one that is read again comes behind the others. */
  readonly #readable: Body[] = [];
  readonly #turns: (() => void)[] = [];
  readonly #chunks = new ChunkTurns<Body>((run) => this.#turns.push(run));

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
    for (const run of this.#turns.splice(0)) run();
    return read;
  }
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
    const chunks = new ChunkTurns<Body>(() => {});
    const body: Body = { name: "a", pauseReading: () => {}, resumeReading: () => {} };
    for (let count = 0; count < chunksPerTurnMax; count++) chunks.count(body);
    expect(chunks.isOver).toBe(false);
    chunks.count(body);
    expect(chunks.isOver).toBe(true);
  });
});
