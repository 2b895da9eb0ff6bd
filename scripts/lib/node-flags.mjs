// Node flags for the commands of penstock. The container image has no shell for the launcher that
// passes them: there NODE_OPTIONS can (deploy/README.md).

/**
 * The events of a batch live for some hundred milliseconds, for which a young generation of the
 * default size is too small. Twice the size, into Parquet files: 167,000 and 188,000 events/s
 * without, 200,000 and 208,000 with, in two alternating rounds on a nearly idle machine; some 40 MB
 * more.
 */
export const sinkFlag = "--max-semi-space-size=32";

/**
 * The objects of a gateway request live for milliseconds. With half of the default size its young
 * generation takes 16 MB less under load. CPU for a million events: 13.8 to 16.1 s with it and 14.0
 * to 14.6 s without (single events), 1.3 to 1.5 and 1.3 to 1.4 s (batches of 100), two alternating
 * rounds of two each. With 1,000 concurrent projects, whose frames live longer, it takes some 4 %
 * fewer single events. The effects process of `up` replaces it (src/app/effects-child.ts).
 */
export const gatewayFlag = "--max-semi-space-size=8";

/** `command`: the first argument of penstock. */
export function nodeFlagsOf(command) {
  if (command === "sink") return [sinkFlag];
  return command === "up" || command === "serve" ? [gatewayFlag] : [];
}
