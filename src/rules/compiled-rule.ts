// A rule in the form that the gateway applies to events: paths are numbers, and texts are JSON.

import type { Lane } from "../platform/base/lane.ts";
import type { ConstantText, SetText } from "../records/found-members.ts";
import type { Action, RuleMode, Scalar } from "./rules-file.ts";
import type { TextPatterns } from "./text-patterns.ts";

/** Properties that can also be members of the event itself. Their paths are the first ones. */
export const topProperties = ["$set", "$set_once", "$unset"] as const;
export const lastTopPath = topProperties.length;

/** What a rule does with an event, and its index in the counts of a rule. */
export const RuleEffect = { dropped: 0, sampled_out: 1, quarantined: 2, changed: 3 } as const;
export type RuleEffect = keyof typeof RuleEffect;

/** The effects of the actions that end the evaluation. */
const endingEffects: { readonly [Kind in Action["kind"]]?: RuleEffect } = {
  drop: "dropped",
  sample: "sampled_out",
  quarantine: "quarantined",
};

export function effectOf(kind: Action["kind"]): RuleEffect {
  return endingEffects[kind] ?? "changed";
}

/** A path is the number of a name in `names`, from 1 on. */
export interface PropertyTest {
  readonly path: number;
  readonly match:
    | { readonly kind: "exists" | "absent" }
    | { readonly kind: "like"; readonly patterns: TextPatterns }
    | {
        readonly kind: "equals";
        readonly values: ReadonlySet<Scalar>;
        /** The texts among the values as JSON, if they are few; else undefined. */
        readonly texts: readonly ConstantText[] | undefined;
      };
}

export type CompiledAction =
  | { readonly kind: "drop" }
  | { readonly kind: "quarantine" }
  /** `limit`: hashes of distinct ids below it are stored. */
  | { readonly kind: "sample"; readonly limit: number }
  | { readonly kind: "remove"; readonly paths: readonly number[] }
  | { readonly kind: "keepOnly"; readonly paths: ReadonlySet<number> }
  | { readonly kind: "hash"; readonly paths: readonly number[] }
  | { readonly kind: "set"; readonly members: readonly SetMember[] }
  | { readonly kind: "rename"; readonly event: string }
  | { readonly kind: "cut"; readonly members: readonly CutMember[] };

interface SetMember {
  readonly path: number;
  readonly text: SetText;
}

interface CutMember {
  readonly path: number;
  readonly bytesMax: number;
}

export interface CompiledRule {
  readonly index: number;
  readonly name: string;
  readonly mode: RuleMode;
  readonly lane: Lane | undefined;
  readonly bot: boolean | undefined;
  readonly event: TextPatterns | undefined;
  readonly sdk: TextPatterns | undefined;
  readonly sdkVersion: TextPatterns | undefined;
  readonly properties: readonly PropertyTest[];
  /** Whether the rule applies to every event of its plans. */
  readonly isUnconditional: boolean;
  readonly actions: readonly CompiledAction[];
  readonly renames: boolean;
  readonly readsMembers: boolean;
  /** Whether the rule has no effect on an event without any member that the rules name. */
  readonly isIdleWithoutMembers: boolean;
  /** Number of events by `RuleEffect`. In the mode `observe`, the effects that it would have had. */
  readonly counts: Float64Array;
}

/** Replaces characters that no record has. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
