import { DiscardPolicy, jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { addProject, declareComplete } from "../../../src/gateway/projects/registry/commands.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { doctorAt, edit, expectOne, makeStreams, withJetStream } from "./doctor-kit.ts";

const server = await startNatsServer();
afterAll(() => server.remove());
const live = "PENSTOCK_LIVE_0";

beforeEach(async () => {
  await withJetStream(server, async (jsm) => {
    for await (const name of jsm.streams.names()) await jsm.streams.delete(name);
  });
  await makeStreams(server);
});

describe("doctor", () => {
  test("reports a stream that may lose acknowledged events", async () => {
    await edit(server, live, { discard: DiscardPolicy.Old, max_msgs: 1_000 });
    const run = await doctorAt(server);
    expect(run.exitCode).toBe(1);
    const { found, fix } = expectOne(run, "streams", "fail");
    expect(found).toMatch(
      /PENSTOCK_LIVE_0 .*discard is old, not new; it has a limit of 1000 messages/,
    );
    expect(fix).toContain(
      `nats stream edit ${live} --subjects='penstock.live.0.*' --discard=new --max-msgs=-1`,
    );
  });

  test("reports a wrong subject of a stream", async () => {
    await edit(server, live, { subjects: ["elsewhere.*"] });
    expect(expectOne(await doctorAt(server), "streams", "fail").found).toContain(
      "it does not accept the subject penstock.live.0.*",
    );
  });

  test("reports a stream that a restore has not completed", async () => {
    await edit(server, live, { subjects: [`penstock_restoring.${live}`] });
    const { found, fix } = expectOne(await doctorAt(server), "streams", "fail");
    expect(found).toContain("its restore is not complete");
    expect(fix).toBe("run `penstock stream restore` again with the same folder");
  });

  test("reports limits that are larger or smaller than the settings", async () => {
    const other = { PENSTOCK_STREAM_BYTES_MAX: "8388608", PENSTOCK_LIVE_AGE_MAX: "1d" };
    const run = await doctorAt(server, other);
    const found = run.of("streams");
    expect(found.map(({ level }) => level)).toEqual(["warn", "warn", "warn"]);
    expect(found[0]?.found).toContain(`${live} has smaller limits than the settings: max_bytes`);
    expect(found[1]?.found).toContain(
      `${live} has larger limits than the settings, which the gateway does not lower: max_age`,
    );
    expect(run.exitCode).toBe(0);
  });

  test("reports a stream that expires too early for the Parquet sink", async () => {
    const day = 86_400;
    await edit(server, live, { max_age: 1.5 * day * 1e9 });
    const isAskedOf = async (seconds: number) =>
      (await doctorAt(server, { PENSTOCK_SINK_FILE_SECONDS: String(seconds) }))
        .of("streams")
        .filter(({ found }) => found.includes(`${live} retains events for 129600 s`))
        .map(({ level }) => level);
    expect(await isAskedOf(day)).toEqual(["warn"]);
    expect(await isAskedOf(day / 2)).toEqual([]);
  });

  test("reports streams without allow_atomic if the server supports it", async () => {
    await edit(server, live, { allow_atomic: false });
    const run = await doctorAt(server);
    const { found, fix } = expectOne(run, "streams", "warn");
    expect(found).toContain(`allow_atomic is not set on ${live}`);
    expect(fix).toContain("restart the gateway");
    expect(run.exitCode).toBe(0);
    const off = await doctorAt(server, { PENSTOCK_ATOMIC_BATCHES: "false" });
    expect(expectOne(off, "streams", "ok").found).toContain("2, as configured");
  });

  test("reports a missing stream if only the other lane's stream exists", async () => {
    await withJetStream(server, (jsm) => jsm.streams.delete(live));
    expect(expectOne(await doctorAt(server), "streams", "warn").found).toContain(
      `missing: ${live}`,
    );
  });

  test.each([
    [0.85, "warn"],
    [0.96, "fail"],
  ] as const)("reports a stream that is full to %s", async (share, level) => {
    const bytesMax = 4_194_304;
    const connection = await connect({ servers: server.url });
    await addProject(connection, { prefix: "penstock", replicas: 1, id: "p" });
    const payload = new Uint8Array(Math.floor((bytesMax * share) / 4));
    for (let message = 0; message < 4; message++)
      await jetstream(connection).publish("penstock.live.0.p", payload);
    await connection.close();
    const run = await doctorAt(server);
    const { found, fix } = expectOne(run, "fill", level);
    expect(found).toContain(`${live} holds`);
    expect(fix).toContain("PENSTOCK_STREAM_BYTES_MAX");
    expect(run.exitCode).toBe(level === "fail" ? 1 : 0);
  });

  test("reports two projects with the same key", async () => {
    const connection = await connect({ servers: server.url });
    const place = { prefix: "penstock", replicas: 1 };
    await addProject(connection, { ...place, id: "first", key: "phc_only_they_know" });
    await addProject(connection, { ...place, id: "second" });
    const before = await doctorAt(server);
    expect(expectOne(before, "registry", "ok").found).toBe("2 projects");

    const bucket = await new Kvm(jetstream(connection)).open("penstock_projects");
    const second = { id: "second", name: "", keys: ["phc_only_they_know"], enabled: true };
    await bucket.put("second", JSON.stringify(second));
    await bucket.put("third", "{");
    await bucket.put("my.third", "{}");
    await connection.close();
    const run = await doctorAt(server);
    const [clash, damaged, nobodys] = run.of("registry");
    expect(clash).toMatchObject({
      level: "fail",
      found: expect.stringContaining("first and second have the same key"),
    });
    expect(clash?.fix).toContain("project rotate second");
    expect(damaged).toMatchObject({
      level: "warn",
      found: expect.stringMatching(/unknown keys get 503.*: third \(the entry is not JSON\)$/),
    });
    expect(nobodys).toMatchObject({
      level: "warn",
      found: expect.stringMatching(
        /get 401: my\.third \(the name of the entry is not a project id\)$/,
      ),
    });
    expect(run.out).not.toContain("phc_only_they_know");
  });

  test("reports a missing or empty registry as lost if events exist", async () => {
    const bucket = "KV_penstock_projects";
    const connection = await connect({ servers: server.url });
    await addProject(connection, { prefix: "penstock", replicas: 1, id: "shop" });
    await withJetStream(server, (jsm) => jsm.streams.purge(bucket));
    // Without an event, nothing shows that the registry ever had a project.
    expect(expectOne(await doctorAt(server), "registry", "warn").found).toContain(
      "no projects yet",
    );
    await jetstream(connection).publish("penstock.live.0.shop", "{}");
    const emptied = expectOne(await doctorAt(server), "registry", "fail");
    expect(emptied.found).toMatch(
      /^KV_penstock_projects is empty, .* a gateway that starts now rejects all keys with 503$/,
    );
    expect(emptied.fix).toContain("--key <key>");
    await withJetStream(server, (jsm) => jsm.streams.delete(bucket));
    const gone = expectOne(await doctorAt(server), "registry", "fail");
    expect(gone.found).toMatch(
      /^KV_penstock_projects is gone, .* a gateway that starts now rejects all keys with 503$/,
    );
    await expect(withJetStream(server, (jsm) => jsm.streams.info(bucket))).rejects.toThrow(
      "stream not found",
    );
    await new Kvm(jetstream(connection))
      .create("penstock_projects")
      .then((kv) => kv.delete("shop"));
    expect(expectOne(await doctorAt(server), "registry", "warn").found).toContain(
      "the registry has no projects",
    );
    // One added project does not mean that all lost projects are back.
    await withJetStream(server, (jsm) => jsm.streams.delete(bucket));
    await addProject(connection, { prefix: "penstock", replicas: 1, id: "shop" });
    const begun = expectOne(await doctorAt(server), "registry", "fail");
    expect(begun.found).toContain("the registry has lost projects");
    expect(begun.fix).toContain("penstock project complete");
    await declareComplete(connection, { prefix: "penstock", replicas: 1 });
    expect(expectOne(await doctorAt(server), "registry", "ok").found).toBe("1 project");
    await connection.close();
  });
});
