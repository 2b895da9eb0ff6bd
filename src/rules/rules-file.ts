// The rules of one project: what the gateway drops, changes or quarantines before it stores an
// event. `parse.ts` reads them from YAML, `compile.ts` turns them into one table.

import type { Lane } from "../platform/base/lane.ts";

/** What happens with the client's address in `ip` of the stored record. */
export const ipRules = ["keep", "truncate", "hash", "drop"] as const;
export type IpRule = (typeof ipRules)[number];

/** `enforce` applies a rule. `observe` only counts what the rule would do. */
export const ruleModes = ["enforce", "observe"] as const;
export type RuleMode = (typeof ruleModes)[number];

/**
 * Names a member: `email` of `properties`, `$set.email` of `$set`, and `$set_once.email` of
 * `$set_once`, wherever the client sent these (in the event or in `properties`). In a name, a dot is
 * written `\.` and a backslash `\\`: `billing\.email`. Other members of objects have no path.
 */
export type PropertyPath = string;

interface SplitPath {
  readonly object: "$set" | "$set_once" | undefined;
  /** The name itself, without backslashes before dots. */
  readonly name: string;
}

/** Splits a path. Returns undefined if it has another dot, or a backslash before another character. */
export function splitPath(path: PropertyPath): SplitPath | undefined {
  const found = /^(?:(\$set|\$set_once)\.)?((?:[^.\\]|\\[.\\])*)$/.exec(path);
  if (found === null) return undefined;
  const [, object, name = ""] = found;
  return { object: object as SplitPath["object"], name: name.replace(/\\([.\\])/g, "$1") };
}

export type Scalar = string | number | boolean | null;

/** All given conditions must hold. A list holds if one of its elements holds. */
export interface Match {
  /** Exact names, or globs in which `*` matches any characters. */
  readonly event?: readonly string[] | undefined;
  /** Exact names or globs of `properties.$lib`. */
  readonly sdk?: readonly string[] | undefined;
  /** Exact texts or globs of `properties.$lib_version`. */
  readonly sdkVersion?: readonly string[] | undefined;
  readonly lane?: Lane | undefined;
  /** Values that a property must equal (one of them), patterns, or `exists` / `absent`. */
  readonly properties?: ReadonlyMap<PropertyPath, PropertyMatch> | undefined;
  /** Whether the User-Agent of the request, or `$raw_user_agent`, is a known bot. */
  readonly bot?: boolean | undefined;
}

export type PropertyMatch =
  | { readonly kind: "equals"; readonly values: readonly Scalar[] }
  /** Exact texts or globs. */
  | { readonly kind: "like"; readonly patterns: readonly string[] }
  | { readonly kind: "exists" }
  | { readonly kind: "absent" };

export type Action =
  | { readonly kind: "drop" }
  /** Keeps this share (0 to 1) of distinct ids, the same ones in every gateway. */
  | { readonly kind: "sample"; readonly share: number }
  | { readonly kind: "quarantine" }
  | { readonly kind: "remove"; readonly paths: readonly PropertyPath[] }
  /** Removes all properties except these and the ones that Penstock itself reads. */
  | { readonly kind: "keepOnly"; readonly paths: readonly PropertyPath[] }
  /** Replaces string and number values by HMAC-SHA-256 with the project's secret, as hex text. */
  | { readonly kind: "hash"; readonly paths: readonly PropertyPath[] }
  | { readonly kind: "set"; readonly values: ReadonlyMap<PropertyPath, Scalar> }
  | { readonly kind: "rename"; readonly event: string }
  /** Cuts strings to at most this number of UTF-8 bytes, at a character boundary. */
  | { readonly kind: "cut"; readonly bytes: ReadonlyMap<PropertyPath, number> };

/** Returns the paths that an action names. */
export function pathsOf(action: Action): readonly PropertyPath[] {
  if ("paths" in action) return action.paths;
  if (action.kind === "set") return [...action.values.keys()];
  return action.kind === "cut" ? [...action.bytes.keys()] : [];
}

export interface Rule {
  /** Unique in the file: `[a-z0-9-]{1,64}`. */
  readonly name: string;
  readonly mode: RuleMode;
  readonly match: Match;
  readonly actions: readonly Action[];
}

export const schemaModes = ["observe", "stamp", "quarantine"] as const;
export type SchemaMode = (typeof schemaModes)[number];

export interface EventSchema {
  /** The exact event name. */
  readonly event: string;
  readonly version: number;
  readonly mode: SchemaMode;
  /** The schema of `properties`: the documented subset of JSON Schema, already checked. */
  readonly properties: unknown;
}

export interface Privacy {
  readonly ip: IpRule;
  /** Names of query parameters that are cut from `$current_url` and `$referrer`; `*` cuts all. */
  readonly cutQuery: readonly string[];
  /** Whether the fragment (`#…`) is cut from the same properties. */
  readonly cutFragment: boolean;
  /** Whether events of PostHog's cookieless mode get its daily hash as distinct id. */
  readonly cookieless: boolean;
}

export interface RulesFile {
  readonly privacy: Privacy;
  readonly rules: readonly Rule[];
  readonly schemas: readonly EventSchema[];
}

export const noPrivacy: Privacy = {
  ip: "keep",
  cutQuery: [],
  cutFragment: false,
  cookieless: false,
};

/** Properties whose members change people and groups. */
export const effectProperties: readonly string[] = [
  "$set",
  "$set_once",
  "$unset",
  "$groups",
  "$group_set",
  "$group_unset",
];
