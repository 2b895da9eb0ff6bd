import { Buffer } from "node:buffer";
import { getPriority, platform, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { type Converted, conversionFor, type ToConvert } from "./converter.ts";

// Errors without a stack are faster. An attribute may contain thousands of texts that are not JSON.
Error.stackTraceLimit = 0;

// The event loop has priority over this thread. On Linux, the call changes only the calling thread.
if (platform() === "linux") setPriority(Math.min(getPriority() + 5, 19));

parentPort?.on("message", ({ head, body }: ToConvert) => {
  const conversion = conversionFor(head);
  const result = conversion.convert(Buffer.from(body.buffer));
  const answer: Converted = { result, notes: conversion.notes };
  parentPort?.postMessage(answer, Buffer.isBuffer(result) ? [result.buffer] : []);
});
