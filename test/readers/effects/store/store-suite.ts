import { afterEach, beforeEach, describe } from "vitest";
import type { StoreRig } from "./store-rig.ts";
import { countTests, progressTests } from "./suite-counts.ts";
import { dumpTests } from "./suite-dump.ts";
import { groupTests, pagingTests } from "./suite-groups.ts";
import { hostileTests, peopleTests } from "./suite-people.ts";
import { personUuidTests } from "./suite-person-uuids.ts";
import { transactionTests } from "./suite-transactions.ts";

export function storeSuite(name: string, openStore: () => Promise<StoreRig>): void {
  describe(`the store on ${name}`, () => {
    const now = {} as { rig: StoreRig };
    beforeEach(async () => {
      now.rig = await openStore();
    });
    afterEach(() => now.rig.end());
    transactionTests(now);
    peopleTests(now);
    personUuidTests(now);
    groupTests(now);
    pagingTests(now);
    countTests(now);
    progressTests(now);
    hostileTests(now);
    dumpTests(now);
  });
}
