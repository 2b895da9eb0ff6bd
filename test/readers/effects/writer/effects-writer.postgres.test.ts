import { batchTests } from "./suite-batches.ts";
import { failureTests } from "./suite-failures.ts";
import { streamTests } from "./suite-streams.ts";
import { describeWriter } from "./writer-kit.ts";

await describeWriter("PostgreSQL", (rig) => {
  failureTests(rig);
  batchTests(rig);
  streamTests(rig);
});
