// The process log: JSON lines on standard error, ISO time. Callers pass what happened and counts;
// keys, bodies and event contents never come here.

import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal";
export type Log = Logger;

const STANDARD_ERROR = 2;

/**
 * A log that drops lines below `level`. Lines are written before the call returns, so that the last
 * words of a process that dies are there. `stream` is for tests.
 */
export function createLog(
  level: LogLevel,
  stream: DestinationStream = destination({ dest: STANDARD_ERROR, sync: true }),
): Log {
  return pino({ level, timestamp: stdTimeFunctions.isoTime, base: { name: "penstock" } }, stream);
}
