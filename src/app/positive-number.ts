// Reads the value of a flag that takes a number above 0.

import { InvalidArgumentError } from "commander";
import { isPositive, isStreamShare } from "../gateway/projects/quota/quota.ts";

/** Throws what commander tells its user. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!isPositive(value)) throw new InvalidArgumentError("must be a number above 0");
  return value;
}

/** Throws what commander tells its user. */
export function streamShare(text: string): number {
  const value = Number(text);
  if (!isStreamShare(value)) throw new InvalidArgumentError("must be a number from 1 to 100");
  return value;
}
