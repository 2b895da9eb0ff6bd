import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { beforeAll, describe, expect, test } from "vitest";
import { type TailOptions, tail } from "../../src/commands/tail.ts";
import { lanes } from "../../src/platform/nats/names.ts";
import { commandWorld } from "../kit/command-context.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { type TestProject, until } from "../kit/gateway.ts";

const all = ["alpha first", "alpha large", "alpha last", "alpha old", "beta first", "beta last"];

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_SCOPE: "partition" } });
const alpha = await gateway.project();
const beta = await gateway.project();

beforeAll(async () => {
  const post = async (
    project: TestProject,
    event: string,
    more: object = {},
    properties: object = {},
  ) => {
    const batch = [
      { event, distinct_id: "u", properties: { ...properties, about: alpha.id + beta.id } },
    ];
    const { status } = await gateway.post("/batch/", { api_key: project.key, batch, ...more });
    expect(status).toBe(200);
  };
  await Promise.all([post(alpha, "alpha first"), post(beta, "beta first")]);
  await post(alpha, "alpha large", {}, { padding: "x".repeat(600_000) });
  await post(alpha, "alpha old", { historical_migration: true });
  await Promise.all([post(alpha, "alpha last"), post(beta, "beta last")]);
});

async function tailed(
  options: Partial<TailOptions>,
  events: string[],
  saying = "",
): Promise<string> {
  const { context, said, stop } = commandWorld();
  const shown = (): string[] =>
    said.out
      .split("\n")
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { event: string }).event)
      .toSorted();
  const running = tail(
    gateway.config,
    { project: undefined, lanes, fromStart: true, ...options },
    context,
  );
  try {
    const isTold = () => said.err.includes("following") && said.err.includes(saying);
    await Promise.race([running, until(() => shown().length >= events.length && isTold())]);
  } finally {
    stop.abort();
    await running;
  }
  expect(shown()).toEqual(events);
  return said.err;
}

describe("tail", () => {
  test("selects a project's events from own and shared messages", async () => {
    const said = await tailed({ project: alpha.id }, [
      "alpha first",
      "alpha large",
      "alpha last",
      "alpha old",
    ]);
    expect(said).not.toContain("no project");
    await tailed({ project: beta.id }, ["beta first", "beta last"]);
  });

  test("selects the events of all projects by default", async () => {
    await tailed({}, all);
  });

  test("selects nothing for a missing project", async () => {
    await expect(tailed({ project: "nosuch" }, [])).rejects.toThrow(
      "tail: there is no project nosuch; the projects are ",
    );
    await expect(tailed({ project: "*" }, [])).rejects.toThrow(
      `the project's id must match [A-Za-z0-9_-]{1,64} (got "*")`,
    );
  });

  test("selects events by name and distinct id", async () => {
    await tailed({ events: ["alpha first", "beta last"] }, ["alpha first", "beta last"]);
    await tailed({ project: alpha.id, events: ["beta last", "alpha old"] }, ["alpha old"]);
    await tailed({ distinctIds: ["u", "unknown"], project: beta.id }, ["beta first", "beta last"]);
    await tailed({ distinctIds: ["unknown"] }, []);
  });

  test("prints each event as one line of limited length", async () => {
    const { context, said, stop } = commandWorld();
    const options = { project: alpha.id, lanes, fromStart: true, format: "text" } as const;
    const running = tail(gateway.config, options, context);
    const lines = () => said.out.split("\n").slice(0, -1);
    await Promise.race([running, until(() => lines().length >= 4)]);
    stop.abort();
    await running;
    const large = lines().find((line) => line.includes("alpha large")) ?? "";
    expect(large).toMatch(
      new RegExp(
        `^\\d{4}-\\d\\d-\\d\\d [\\d:.]+Z  ${alpha.id}  alpha large  u  \\{"padding":"x+… \\(600\\d+ characters\\)$`,
      ),
    );
    expect(Math.max(...lines().map(({ length }) => length))).toBeLessThan(500);
  });

  test("skips lines that are not events with one report per message", async () => {
    const record = (event: string) =>
      JSON.stringify({
        project_id: "gamma",
        event,
        distinct_id: "d",
        properties: {},
        timestamp: "2026-01-02T03:04:05.000Z",
      });
    const text = [record("first"), "{", "null", "[1]", '{"event":1}', record("last")].join("\n");
    const connection = await connect({ servers: gateway.nats.url });
    await jetstream(connection).publish(`${gateway.config.subjectPrefix}.live.0.gamma`, text);
    await connection.close();
    for (const more of [{ format: "text" }, { events: ["first", "last"] }] as const) {
      const { context, said, stop } = commandWorld();
      const running = tail(
        gateway.config,
        { project: "gamma", lanes, fromStart: true, ...more },
        context,
      );
      const lines = () => said.out.split("\n").slice(0, -1);
      await Promise.race([running, until(() => lines().length >= 2)]);
      stop.abort();
      await running;
      expect(lines()).toEqual([
        expect.stringContaining("first"),
        expect.stringMatching(/gamma.*last/),
      ]);
      expect(
        said.err.match(/skipped 4 lines of message \d+ of PENSTOCK_LIVE_0 that are not events/g),
      ).toHaveLength(1);
      expect(said.err).not.toContain("retrying");
    }
  });
});
