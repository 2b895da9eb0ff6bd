// The thread that converts bodies, one after another. The other end is thread-link.ts.

import { Buffer } from "node:buffer";
import { parentPort } from "node:worker_threads";
import { conversionFor } from "./conversions.ts";
import type { Converted, ToConvert } from "./thread-link.ts";

parentPort?.on("message", ({ head, body }: ToConvert) => {
  const conversion = conversionFor(head);
  const result = conversion.convert(Buffer.from(body.buffer));
  const answer: Converted = { result, notes: conversion.notes };
  parentPort?.postMessage(answer, Buffer.isBuffer(result) ? [result.buffer] : []);
});
