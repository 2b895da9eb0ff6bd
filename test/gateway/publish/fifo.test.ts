import fc from "fast-check";
import { expect, test } from "vitest";
import { Fifo } from "../../../src/gateway/publish/fifo.ts";

test("the queue behaves like an array", () => {
  const step = fc.oneof(
    fc.constant("shift" as const),
    fc.nat(50),
    fc.record({ takeMultiplesOf: fc.integer({ min: 2, max: 7 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const queue = new Fifo<number>();
      let model: number[] = [];
      for (const what of steps) {
        if (what === "shift") {
          expect(queue.shift()).toBe(model.shift());
        } else if (typeof what === "number") {
          queue.push(what);
          model.push(what);
        } else {
          const multiple = (value: number): boolean => value % what.takeMultiplesOf === 0;
          expect(queue.take(multiple)).toEqual(model.filter(multiple));
          model = model.filter((value) => !multiple(value));
        }
        expect(queue.length).toBe(model.length);
        expect([...queue]).toEqual(model);
      }
    }),
  );
});
