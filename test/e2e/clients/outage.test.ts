import { setTimeout as delay } from "node:timers/promises";
import { PostHog as PostHogLite } from "posthog-js-lite";
import { PostHog } from "posthog-node";
import { expect, test, vi } from "vitest";
import type { TestProject } from "../../kit/gateway.ts";
import { chromiums, readyMsMax, startStage, type Visit, visit } from "./browser-kit.ts";
import { isReady, posthogJs, posthogJsLite } from "./pages.ts";
import { findPythonClient, runPython } from "./python-kit.ts";
import { type Captured, expectStored } from "./stored-kit.ts";

const outageMs = 15_000;
const lateMs = 6_000;
const eventsOfEach = 30;
const found = chromiums();
const { python } = await findPythonClient();
const stage = startStage();

test("no SDK loses an event in fifteen seconds without NATS", {
  timeout: 120_000,
}, async () => {
  const complained = vi.spyOn(console, "error");
  const probe = await stage.gateway.project();
  const projects = [
    await stage.gateway.project(),
    await stage.gateway.project(),
    await stage.gateway.project(),
  ] as const;
  const pages = await openPages();
  await stage.gateway.nats.kill();
  const goneAt = performance.now();
  const after = (ms: number) => delay(Math.max(0, goneAt + ms - performance.now()));
  const refused = refusal(probe);
  for (const { opened, isPatient } of pages) if (isPatient) await capturesOf(opened);
  await after(lateMs);
  for (const { opened, isPatient } of pages) if (!isPatient) await capturesOf(opened);
  const others = [
    node(projects[0]),
    lite(projects[1]),
    ...(python === undefined ? [] : [inPython(projects[2], python)]),
  ];
  expect(await refused).toEqual({
    status: 503,
    retryAfter: expect.stringMatching(/^([6-9]|1\d)$/),
  });
  await after(outageMs);
  for (const { opened } of pages)
    expect(opened.heard).toContainEqual(expect.objectContaining({ status: 503 }));
  await stage.gateway.nats.restart();
  for (const { project, opened } of pages)
    await expectStored(stage.gateway, project, await opened.captured(), { timeoutMs: 30_000 });
  for (const expectAll of await Promise.all(others)) await expectAll();
  expect(await stage.gateway.events(probe)).toEqual([]);
  expect(complained).not.toHaveBeenCalled();
  complained.mockRestore();
});

const expected = /\b503\b/;

interface Opened {
  readonly project: TestProject;
  readonly opened: Visit;
  readonly isPatient: boolean;
}

async function openPages(): Promise<Opened[]> {
  const opened: Opened[] = [];
  for (const [path, body] of found.flatMap(() => [
    ["/", posthogJs] as const,
    ["/lite", posthogJsLite] as const,
  ])) {
    const project = await stage.gateway.project();
    stage.site.pages.set(path, body({ host: stage.gateway.url, key: project.key }));
    const each = await visit(stage.browser!, `${stage.site.origin}${path}`, { expected });
    await expect.poll(() => each.page.evaluate(isReady), { timeout: readyMsMax }).toBe(true);
    opened.push({ project, opened: each, isPatient: body === posthogJs });
  }
  return opened;
}

async function capturesOf({ page }: Visit): Promise<void> {
  await page.evaluate(
    `for (let index = 0; index < ${eventsOfEach}; index++) posthog.capture("counted", { index });`,
  );
  await page.locator("#buy").click();
}

async function refusal({
  key,
}: TestProject): Promise<{ status: number; retryAfter: string | null }> {
  const event = JSON.stringify({ api_key: key, event: "probe", distinct_id: "u" });
  let heard: Response | undefined;
  await expect
    .poll(
      async () => {
        heard = await fetch(`${stage.gateway.url}/e/`, {
          method: "POST",
          body: event,
          headers: { Origin: stage.site.origin },
        });
        return heard.status;
      },
      { timeout: readyMsMax },
    )
    .toBe(503);
  const { headers } = heard!;
  expect(headers.get("access-control-expose-headers")).toContain("Retry-After");
  return { status: heard!.status, retryAfter: headers.get("retry-after") };
}

type Ended = Promise<() => Promise<void>>;

async function node(project: TestProject): Ended {
  const captured: Captured[] = [];
  const posthog = new PostHog(project.key, { host: stage.gateway.url });
  posthog.on("*", (_type: string, message?: Captured) => void noteIn(captured, message));
  for (let index = 0; index < eventsOfEach; index++)
    posthog.capture({ distinctId: `user-${index}`, event: "counted", properties: { index } });
  await posthog.shutdown();
  expect(captured).toHaveLength(eventsOfEach);
  return async () => void (await expectStored(stage.gateway, project, captured));
}

async function lite(project: TestProject): Ended {
  const captured: Captured[] = [];
  const posthog = new PostHogLite(project.key, { host: stage.gateway.url });
  posthog.on("*", (_type: string, message?: Captured) => void noteIn(captured, message));
  for (let index = 0; index < eventsOfEach; index++) posthog.capture("counted", { index });
  await posthog.shutdown();
  expect(captured).toHaveLength(eventsOfEach);
  return async () => void (await expectStored(stage.gateway, project, captured));
}

function noteIn(captured: Captured[], message: Captured | undefined): void {
  if (message?.uuid !== undefined) captured.push(JSON.parse(JSON.stringify(message)) as Captured);
}

async function inPython(project: TestProject, program: string): Ended {
  const said = await runPython(program, { gateway: stage.gateway, project }, [
    String(eventsOfEach),
  ]);
  expect(said).toMatchObject({ errors: [], log: "" });
  return async () => {
    const events = await stage.gateway.events(project);
    expect(events.map((event) => event["uuid"]).sort()).toEqual([...said.uuids].sort());
  };
}
