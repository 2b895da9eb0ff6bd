// The thread that converts bodies, one after another. The main-thread side is thread-link.ts.

import { Buffer } from "node:buffer";
import { getPriority, platform, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { conversionFor } from "./conversions.ts";
import type { Converted, ToConvert } from "./thread-link.ts";

// The text of an attribute may contain thousands of texts that are not JSON. Without a stack the
// error of each takes less time.
Error.stackTraceLimit = 0;

// The event loop has priority over this thread, as over the threads of the pool. Linux has a
// priority per thread, and changes that of the calling thread.
if (platform() === "linux") setPriority(Math.min(getPriority() + 5, 19));

parentPort?.on("message", ({ head, body }: ToConvert) => {
  const conversion = conversionFor(head);
  const result = conversion.convert(Buffer.from(body.buffer));
  const answer: Converted = { result, notes: conversion.notes };
  parentPort?.postMessage(answer, Buffer.isBuffer(result) ? [result.buffer] : []);
});
