import { describe, expect, test } from "vitest";
import { scannedAtOnceBytesMax } from "../../../src/gateway/intake/work-size.ts";
import { randomFrom } from "../../faults/random.ts";
import { type BodyOf, bodyOf, IntakeKit } from "./intake-kit.ts";

function nameOf(number: number): string {
  return [...number.toString(4)].map((digit) => "wxyz"[Number(digit)]).join("");
}

describe("the intake publishes history of a project in order of arrival", () => {
  test.each([1, 2, 3])(
    "in a random mix of small, large, live and historical bodies (seed %i)",
    async (seed) => {
      const random = randomFrom(seed);
      const pick = <Value>(values: readonly Value[]): Value =>
        values[Math.floor(random() * values.length)]!;
      const kit = new IntakeKit();
      kit.outcome = () =>
        random() < 0.8 ? "stored" : new Promise((resolve) => setTimeout(resolve, random() * 5));
      const bodies: BodyOf[] = Array.from({ length: 60 }, (_, number) => ({
        name: nameOf(number),
        project: pick(["a", "b", "c"]),
        events: pick([1, 3, 50, 400, 700, 3_000]),
        historical: random() < 0.7,
        padding: pick([10, 300]),
        hidden: random() < 0.4,
      }));
      const sent: Promise<void>[] = [];
      for (const body of bodies) {
        sent.push(kit.send(body).work);
        if (random() < 0.3) await new Promise((resolve) => setTimeout(resolve, random() * 4));
      }
      await Promise.all(sent);
      for (const project of ["a", "b", "c"]) {
        const own = bodies.filter((body) => body.historical && body.project === project);
        // The order between the two kinds of body depends on fast scans. Small hidden bodies may be
        // of either kind.
        const shown = own.filter(({ hidden }) => hidden !== true);
        const hiddenAndLarge = own.filter(
          (body) => body.hidden === true && bodyOf(body).length > scannedAtOnceBytesMax,
        );
        for (const kind of [shown, hiddenAndLarge]) {
          const names = kind.map(({ name }) => name);
          expect(kit.order((name) => names.includes(name))).toEqual(names);
        }
      }
      expect(kit.placed.length).toBe(bodies.reduce((sum, { events }) => sum + events, 0));
    },
  );
});
