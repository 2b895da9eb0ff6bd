// What an applier gives to be committed.

import type { Commit } from "../types.ts";

/** All of a commit but its place among the others. */
export type Changes = Omit<Commit, "after" | "number" | "isPart">;
