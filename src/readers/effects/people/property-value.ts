// The visible value of a property.

import { compareStamps } from "../stamp.ts";
import type { PropertyState } from "../types.ts";

/** The value as JSON text; undefined: it is unset. */
export function shownJson(property: PropertyState): string | undefined {
  const { write, once } = property;
  if (write === undefined) return once?.json;
  if (write.json !== null) return write.json;
  if (once !== undefined && compareStamps(once.stamp, write.stamp) > 0) return once.json;
  return undefined;
}
