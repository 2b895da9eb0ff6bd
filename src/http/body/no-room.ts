// What a request hears that there is no room for.

import type { Problem } from "../../base/errors.ts";

export const noRoom: Problem = { code: "overloaded", detail: "No room for the body" };
export const noRoomToInflate: Problem = {
  code: "overloaded",
  detail: "No room to decompress the body",
};
