// What a target checks that cannot do so in the statement that moves its positions: whether a batch
// begins where the target is. Else somebody else has written, or the target was put back.

import { MovedError, type SinkBatch, type SinkPosition } from "./sink-target.ts";

/** Throws a MovedError. `positionOf` says where the target is; undefined: it has no such stream. */
export function mustBeNext(
  { before, positions }: Pick<SinkBatch, "before" | "positions">,
  positionOf: (stream: string) => Pick<SinkPosition, "epoch" | "sequence"> | undefined,
): void {
  for (const { stream } of positions) {
    const [was, is] = [before.get(stream), positionOf(stream)];
    if (was?.epoch !== is?.epoch || was?.sequence !== is?.sequence)
      throw new MovedError(
        `the target is not at message ${was?.sequence ?? 0} of ${stream} any more`,
      );
  }
}
