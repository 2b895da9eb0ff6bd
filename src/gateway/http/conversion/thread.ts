import { Buffer } from "node:buffer";
import { getPriority, platform, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { type Converted, conversionFor, type ToConvert } from "./converter.ts";

// Creating an error is faster without a stack. This matters because an attribute may contain
// thousands of texts that are not JSON.
Error.stackTraceLimit = 0;

// Lowers the priority of this thread below that of the event loop. On Linux, the call affects only
// the calling thread.
if (platform() === "linux") setPriority(Math.min(getPriority() + 5, 19));

parentPort?.on("message", ({ head, body }: ToConvert) => {
  const conversion = conversionFor(head);
  const result = conversion.convert(Buffer.from(body.buffer));
  const answer: Converted = { result, notes: conversion.notes };
  parentPort?.postMessage(answer, Buffer.isBuffer(result) ? [result.buffer] : []);
});
