import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../kit/for-file.ts";
import { type TestProject, until } from "../kit/gateway.ts";
import { type TestViewer, watch } from "./live-kit.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_SCOPE: "partition" } });
const alpha = await gateway.project();
const beta = await gateway.project();

async function post(
  project: TestProject,
  event: string,
  more: object = {},
  properties: object = {},
): Promise<void> {
  const batch = [{ event, distinct_id: "u", properties }];
  expect((await gateway.post("/batch/", { api_key: project.key, batch, ...more })).status).toBe(
    200,
  );
}

const names = (viewer: TestViewer): string[] => viewer.events().map(({ event }) => event);

describe("a viewer of the live page", () => {
  test("gets events of one project or all as they are stored", async () => {
    await post(alpha, "before");
    const all = await watch(gateway.adminUrl);
    const one = await watch(gateway.adminUrl, { path: `/live?project=${alpha.id}` });
    await until(() => names(all).includes("before") && names(one).includes("before"));

    const fake = { project_id: alpha.id, text: `"project_id":"${alpha.id}"` };
    await Promise.all([post(alpha, "alpha small"), post(beta, "beta small", {}, fake)]);
    await post(alpha, "alpha old", { historical_migration: true });
    await post(alpha, "alpha large", {}, { padding: "x".repeat(600_000) });
    await post(alpha, "alpha last");
    const alphas = ["before", "alpha small", "alpha old", "alpha large", "alpha last"].toSorted();
    await until(() => names(one).length >= alphas.length && names(all).length > alphas.length);
    expect(names(one).toSorted()).toEqual(alphas);
    expect(names(all).toSorted()).toEqual([...alphas, "beta small"].toSorted());
    const large = one.events().find(({ event }) => event === "alpha large");
    expect([large?.text.length, (large?.bytes ?? 0) > 600_000, large?.isCut]).toEqual([
      4_096,
      true,
      true,
    ]);
    const small = one.events().find(({ event }) => event === "alpha small");
    expect(small?.isCut).toBe(false);
    expect(JSON.parse(small?.text ?? "")).toMatchObject({
      project_id: alpha.id,
      event: "alpha small",
      distinct_id: "u",
    });

    const later = await watch(gateway.adminUrl, { path: `/live?project=${alpha.id}` });
    await until(() => names(later).includes("alpha last"));
  });

  test("gets some events of a flood and the number of omitted events", async () => {
    const events = 3_000;
    const viewer = await watch(gateway.adminUrl, { path: `/live?project=${beta.id}` });
    await post(beta, "one");
    await until(() => names(viewer).includes("one"));
    const before = viewer.events().length + viewer.skipped();
    const batch = Array.from({ length: events }, (_, index) => ({
      event: `e${index}`,
      distinct_id: "u",
    }));
    expect((await gateway.post("/batch/", { api_key: beta.key, batch })).status).toBe(200);
    await until(() => viewer.events().length + viewer.skipped() >= before + events);
    expect(viewer.events().length + viewer.skipped()).toBe(before + events);
    // The events arrive within a few seconds, so the limit of the rate applies.
    expect(viewer.events().length).toBeLessThan(events / 2);
    expect(viewer.events().length).toBeGreaterThan(before);
  });

  test("gets a note if the watched project does not exist", async () => {
    const unknown = await watch(gateway.adminUrl, { path: "/live?project=to-come" });
    await until(() => unknown.said("unknown").length > 0);
    expect(unknown.said("unknown")).toEqual([{ project: "to-come" }]);
    const known = await watch(gateway.adminUrl, { path: `/live?project=${alpha.id}` });
    await post(alpha, "alpha again");
    await until(() => names(known).includes("alpha again") && known.said("state").length > 1);
    expect(known.said("unknown")).toEqual([]);
  });

  test("gets a mark on events that were stored before the viewer connected", async () => {
    const gamma = await gateway.project();
    await post(gamma, "was there");
    const first = await watch(gateway.adminUrl, { path: `/live?project=${gamma.id}` });
    await until(() => names(first).includes("was there"));
    await post(gamma, "came");
    await until(() => names(first).includes("came"));
    expect(first.events().map(({ event, wasThere }) => [event, wasThere])).toEqual([
      ["was there", true],
      ["came", undefined],
    ]);
  });
});
