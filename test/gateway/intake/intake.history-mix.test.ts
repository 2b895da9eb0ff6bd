// History of a project is stored in the order in which its bodies came, small and large: those that
// show at once whose they are, and those of which the scan has to say it, whatever else comes
// between.

import { describe, expect, test } from "vitest";
import { scannedAtOnceBytesMax } from "../../../src/gateway/intake/work-size.ts";
import { randomFrom } from "../../faults/random.ts";
import { type BodyOf, bodyOf, IntakeKit } from "./intake-kit.ts";

function nameOf(number: number): string {
  return [...number.toString(4)].map((digit) => "wxyz"[Number(digit)]).join("");
}

describe("history keeps its order in any mix", () => {
  test.each([1, 2, 3])("seed %i", async (seed) => {
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
      // Between the kinds it is kept as long as the scan is quick, which nobody can promise here;
      // small hidden ones may be of either.
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
  });
});
