import { DiscardPolicy } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { rejectedConfigs } from "../../../src/gateway/streams/desired.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  doctorAt,
  edit,
  expectOne,
  makeStreams,
  streamSettings,
  withJetStream,
} from "./doctor-kit.ts";

const server = await natsServerForFile();
const rejectedBytes = 1_048_576;
const on = { PENSTOCK_REJECTED_BYTES: String(rejectedBytes) };
const name = "PENSTOCK_REJECTED_0";

describe("doctor", () => {
  test("warns of a missing or wrong stream of rejected events, and never of a full one", async () => {
    await makeStreams(server);
    expect(expectOne(await doctorAt(server), "streams", "ok").found).toMatch(/^2, as configured/);
    const missing = await doctorAt(server, on);
    expect(missing.exitCode).toBe(0);
    expect(expectOne(missing, "streams", "warn").found).toBe(`2 of 3 exist; missing: ${name}`);

    const wanted = rejectedConfigs({
      ...streamSettings,
      rejectedBytes,
      rejectedAgeMax: 604_800_000,
    });
    await withJetStream(server, async (jsm) => {
      await jsm.streams.add(wanted[0]!);
    });
    const filled = await doctorAt(server, on);
    expect(expectOne(filled, "streams", "ok").found).toMatch(/^3, as configured/);
    expect(expectOne(filled, "fill", "ok").found).toContain("the fullest stream");

    await edit(server, name, { discard: DiscardPolicy.New });
    const wrong = await doctorAt(server, on);
    expect(wrong.exitCode).toBe(0);
    const { found, fix } = expectOne(wrong, "streams", "warn");
    expect(found).toContain("rejected events are lost: discard is new, not old");
    expect(fix).toContain("--discard=old");
  });
});
