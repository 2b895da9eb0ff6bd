import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { TestGateway } from "../../kit/gateway.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { rejectedOf, rejectedStream, untilRejected } from "../../kit/rejected.ts";
import { run, servers } from "./rejected-kit.ts";

const gateways: [string, TestGateway][] = [];
for (const [name, options] of servers) gateways.push([name, await gatewayForFile(options)]);

/** Returns the files of the stream that contain the text. */
function filesWith({ nats }: TestGateway, text: string): string[] {
  const folder = path.join(nats.storeDir, "jetstream", "$G", "streams", rejectedStream);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));
}

describe.each(gateways)("on %s", (_, gateway) => {
  test("erase removes every rejected event that contains an id of the person, and no other", async () => {
    const [project, other] = await gateway.projects(2);
    const own = [
      { distinct_id: "person-seven", properties: { note: "of-the-person" } },
      { event: "order", properties: { nested: [{ mail: "person-seven" }] } },
      { event: "order", user_id: 7_007 },
    ];
    const kept = [{ distinct_id: "person-eight" }, { event: "order", properties: { n: 7_007 } }];
    await gateway.post("/batch/", { api_key: project!.key, batch: [...own, ...kept] });
    await gateway.post("/batch/", { api_key: other!.key, batch: own.slice(0, 1) });
    await untilRejected(gateway, project!, 5);
    await untilRejected(gateway, other!, 1);
    expect(filesWith(gateway, "of-the-person")).not.toEqual([]);
    const receipt = path.join(temporaryFolder(), "receipt.json");
    const args = ["erase", project!.id, "--distinct-id", "person-seven", "--distinct-id", "7007"];
    const dry = await run(gateway, [...args, "--no-effects", "--dry-run"]);
    expect(dry.out).toContain("3 events would be erased");
    expect(await rejectedOf(gateway, project!)).toHaveLength(5);
    const erased = await run(gateway, [...args, "--no-effects", "--yes", "--receipt", receipt]);
    expect(erased.fault).toBeUndefined();
    expect(erased.out).toContain("3 events erased");
    const left = await rejectedOf(gateway, project!);
    expect(left.map(({ item }) => JSON.parse(item) as unknown)).toEqual(kept);
    const { streams } = JSON.parse(readFileSync(receipt, "utf8")) as { streams: object[] };
    expect(streams.at(-1)).toMatchObject({ stream: rejectedStream, events: 3, rewritten: 1 });
    // The items of the other project are the only ones with this text that are left.
    await run(gateway, ["rejected", "purge", "--project", other!.id, "--yes"]);
    expect(await rejectedOf(gateway, other!)).toEqual([]);
  });

  test("an erased item is overwritten in the store", async () => {
    const project = await gateway.project();
    const item = { distinct_id: "person-nine", properties: { note: "secret-of-nine" } };
    await gateway.post("/batch/", { api_key: project.key, batch: [item] });
    await untilRejected(gateway, project, 1);
    expect(filesWith(gateway, "secret-of-nine")).toHaveLength(1);
    const receipt = path.join(temporaryFolder(), "receipt.json");
    const args = ["erase", project.id, "--distinct-id", "person-nine", "--no-effects", "--yes"];
    expect((await run(gateway, [...args, "--receipt", receipt])).fault).toBeUndefined();
    expect(await rejectedOf(gateway, project)).toEqual([]);
    expect(filesWith(gateway, "secret-of-nine")).toEqual([]);
  });

  test("project remove removes the project's rejected events", async () => {
    const [project, other] = await gateway.projects(2);
    for (const { key } of [project!, other!])
      await gateway.post("/batch/", { api_key: key, batch: [{ event: "order" }] });
    await untilRejected(gateway, project!, 1);
    await untilRejected(gateway, other!, 1);
    const removed = await run(gateway, ["project", "remove", project!.id, "--yes", "--no-effects"]);
    expect(removed.fault).toBeUndefined();
    expect(removed.out).toContain(`${rejectedStream}: 1 message removed`);
    expect(await rejectedOf(gateway, project!)).toEqual([]);
    expect(await rejectedOf(gateway, other!)).toHaveLength(1);
  });

  test("stream show, set, purge and backup include the stream of rejected events", async () => {
    const project = await gateway.project();
    await gateway.post("/batch/", { api_key: project.key, batch: [{ event: "order" }] });
    await untilRejected(gateway, project, 1);
    const shown = await run(gateway, ["stream", "show", "rejected", "--json"]);
    expect(JSON.parse(shown.out)).toMatchObject([{ stream: rejectedStream, lane: "rejected" }]);
    const set = await run(gateway, ["stream", "set", "rejected", "--max-bytes", "33554432"]);
    expect(set.out).toContain("32.0 MiB (set)");
    const back = await run(gateway, ["stream", "set", rejectedStream, "--from-settings"]);
    expect(back.out).toContain("64.0 MiB (settings)");
    const folder = path.join(temporaryFolder(), "backup");
    const backup = await run(gateway, ["stream", "backup", folder]);
    expect(backup.fault).toBeUndefined();
    expect(readdirSync(folder)).toContain(rejectedStream);
    const restored = await run(gateway, ["stream", "restore", folder, "rejected"]);
    expect([restored.fault, restored.out]).toEqual([
      undefined,
      `${rejectedStream}: unchanged: it already has the messages of the backup\n`,
    ]);
    const purge = ["stream", "purge", "rejected", "--project", project.id, "--yes"];
    expect((await run(gateway, purge)).fault).toBeUndefined();
    expect(await rejectedOf(gateway, project)).toEqual([]);
  });
});
