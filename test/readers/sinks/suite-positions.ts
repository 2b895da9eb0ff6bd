import { expect, onTestFinished, test } from "vitest";
import type { Before, SinkPosition, SinkTarget } from "../../../src/readers/sinks/sink-target.ts";

const stream = "PENSTOCK_LIVE_0";

function at(sequence: number, epoch = 1): SinkPosition {
  const name = { stream, lane: "live", partition: 0 } as const;
  return { ...name, epoch, created: `made ${epoch}`, sequence, trail: [] };
}

function beginningAt(...positions: readonly SinkPosition[]): Before {
  return new Map(positions.map((one) => [one.stream, one]));
}

/** Each function that `newPlace` returns creates targets for one new schema, database or folder. */
export function positionTests(newPlace: () => Promise<() => SinkTarget>): void {
  test("a sink target rejects a batch that does not begin at its position", async () => {
    const target = (await newPlace())();
    onTestFinished(() => target.close());
    const write = (before: Before, position: SinkPosition) =>
      target.write({ before, positions: [position], events: [], rejected: [], incidents: [] });
    const places = async () =>
      (await target.open()).map(({ epoch, sequence }) => [epoch, sequence]);
    expect(await places()).toEqual([]);
    const elsewhere = [beginningAt(at(7)), beginningAt(at(5, 2)), beginningAt()];
    await expect(write(elsewhere[0]!, at(9))).rejects.toMatchObject({ name: "MovedError" });
    expect(await places()).toEqual([]);
    await write(beginningAt(), at(5));
    for (const before of elsewhere) {
      expect(await places()).toEqual([[1, 5]]);
      await expect(write(before, at(9))).rejects.toMatchObject({
        name: "MovedError",
        message: expect.stringMatching(
          /moved the target's position in PENSTOCK_LIVE_0: it is no longer at message [075]/,
        ),
      });
    }
    await target.open();
    await write(beginningAt(at(5)), at(9));
    await write(beginningAt(at(9)), at(1, 2));
    expect(await places()).toEqual([[2, 1]]);
  });

  test("a sink target accepts any position of streams outside the batch", async () => {
    const target = (await newPlace())();
    onTestFinished(() => target.close());
    await target.open();
    const none = { events: [], rejected: [], incidents: [] };
    const other = { ...at(3), stream: "PENSTOCK_LIVE_1", partition: 1 };
    await target.write({ ...none, before: beginningAt(), positions: [at(5), other] });
    const before = beginningAt(at(5), { ...other, sequence: 2 });
    await target.write({ ...none, before, positions: [at(6)] });
    const places = (await target.open()).map(({ sequence }) => sequence);
    expect(places.sort()).toEqual([3, 6]);
  });
}
