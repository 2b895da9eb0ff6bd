import { getPriority, platform, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { parseStoredRules } from "../../../rules/parse.ts";

// Lowers the priority of this thread below that of the event loop. On Linux, the call affects only
// the calling thread.
if (platform() === "linux") setPriority(Math.min(getPriority() + 5, 19));

parentPort?.postMessage(parseStoredRules(workerData as string));
