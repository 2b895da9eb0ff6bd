import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, projectOf, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test.each([
  [300, 2_048],
  [3_000, 8_192],
  [30_000, 65_536 + 2_048],
  [240_000, 262_144 + 2_048],
])(
  "a request's own frame with a line of %i bytes uses at most %i bytes",
  async (lineBytes, bytesMax) => {
    const rig = await startRig(server);
    server.freeze();
    const line = `${"x".repeat(lineBytes - 1)}\n`;
    // A large request allocates the frame before it knows the number of lines.
    const sink = rig.publisher.ownFrame("live", projectOf("alpha"), 262_144);
    sink.commit(sink.buffer.write(line, 0), 1);
    const settled = new Promise((resolve) => {
      const frameSettled = (outcome: string): void => resolve(outcome);
      rig.publisher.submit(sink, "", { frameSettled }, performance.now() + 10_000);
    });
    await nextTurn();
    expect(rig.admission.bytes).toBeGreaterThan(lineBytes + 1_000);
    expect(rig.admission.bytes).toBeLessThanOrEqual(bytesMax + 2_048);
    server.thaw();

    expect(await settled).toBe(stored.outcome);
    expect((await rig.stored("live")).map(({ lines }) => lines)).toEqual([[line.trim()]]);
    await rig.close();
  },
);
