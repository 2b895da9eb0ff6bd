import { describe, expect, test } from "vitest";
import { runChild, startScansSource } from "../child.ts";

// The worker waits for `gate` forever, so its scans are still running when it ends.
const workerSource = `
  import { parentPort, workerData } from "node:worker_threads";
  ${startScansSource}
  startScans(6);
  parentPort.postMessage("started");
  Atomics.wait(workerData, 0, 0);
`;

function terminateWorkers(beforeStart: string): string {
  return `
    import { pbkdf2 } from "node:crypto";
    import { once } from "node:events";
    import { Worker } from "node:worker_threads";
    ${startScansSource}
    const gate = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; round < 3; round += 1) {
      ${beforeStart}
      const worker = new Worker(${JSON.stringify(workerSource)}, { eval: true, workerData: gate });
      await once(worker, "message");
      await worker.terminate();
    }
    console.log("status", ...(await Promise.all(startScans(2))));
  `;
}

describe("with background scans", () => {
  test("a worker thread can be terminated while its scans run", () => {
    expect(runChild(terminateWorkers(""))).toEqual({
      exitCode: 0,
      signal: null,
      output: "status 0 0\n",
    });
  });

  test("a worker thread can be terminated while its scans are queued", () => {
    const occupyThreadPool = `for (let i = 0; i < 8; i += 1) pbkdf2("a", "b", 200_000, 32, "sha256", () => {});`;
    expect(runChild(terminateWorkers(occupyThreadPool))).toEqual({
      exitCode: 0,
      signal: null,
      output: "status 0 0\n",
    });
  });

  test("a worker thread ends by itself only after its scans have ended", () => {
    const source = `
    import { Worker } from "node:worker_threads";
    // The worker writes by itself: what it logs passes through this thread, maybe after "exit".
    const source = ${JSON.stringify(`(async () => { ${startScansSource}
      const { writeSync } = await import("node:fs");
      Promise.all(startScans(3)).then((all) => writeSync(1, ["status", ...all].join(" ") + "\\n")); })();`)};
    new Worker(source, { eval: true }).on("exit", (code) => console.log("exit", code));
  `;
    expect(runChild(source)).toEqual({
      exitCode: 0,
      signal: null,
      output: "status 0 0 0\nexit 0\n",
    });
  });

  test("the process can exit while scans run or are queued", () => {
    const exits = runChild(`${startScansSource} startScans(8); process.exit(7);`);
    expect(exits).toEqual({ exitCode: 7, signal: null, output: "" });
    const fails = runChild(
      `${startScansSource} startScans(8); setImmediate(() => { throw new Error("on purpose"); });`,
    );
    expect([fails.exitCode, fails.signal]).toEqual([1, null]);
    expect(fails.output).toContain("Error: on purpose");
  });

  test("the process ends by itself only after its scans have ended", () => {
    const source = `${startScansSource} Promise.all(startScans(3)).then((statuses) => console.log("status", ...statuses));`;
    expect(runChild(source)).toEqual({ exitCode: 0, signal: null, output: "status 0 0 0\n" });
  });
});
