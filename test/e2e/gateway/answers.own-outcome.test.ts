import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

test("each of 800 concurrent requests from three projects gets the right outcome", async () => {
  const projects = [await gateway.project(), await gateway.project(), await gateway.project()];
  const expected = new Map(projects.map((project) => [project.id, [] as string[]]));
  const answers = await Promise.all(
    Array.from({ length: 800 }, async (_, index) => {
      const project = projects[index % 3]!;
      const stored = expected.get(project.id)!;
      const event = (name: string) => ({
        event: name,
        distinct_id: `u${index}`,
        properties: { index },
      });
      switch (index % 5) {
        case 0: {
          const names = [`b${index}-0`, `b${index}-1`, `b${index}-2`];
          stored.push(...names);
          const batch = [...names.map(event), event(""), { ...event("bad"), properties: 1 }];
          const { status, json } = await gateway.post("/batch/", { api_key: project.key, batch });
          return (
            status === 200 &&
            json["accepted"] === 3 &&
            json["dropped"] === 2 &&
            json["errors_total"] === 1
          );
        }
        case 1: {
          const { status, json } = await gateway.post("/capture/", {
            api_key: project.key,
            ...event("bad"),
            properties: 1,
          });
          return status === 400 && json["code"] === "invalid_properties";
        }
        case 2: {
          const unknown = { api_key: `${project.key}?`, ...event("e") };
          // While the last reading of the registry is too old, an unknown key may be new, so the
          // gateway returns 503.
          let answer = await gateway.post("/capture/", unknown);
          while (answer.status === 503) answer = await gateway.post("/capture/", unknown);
          return answer.status === 401 && answer.json["code"] === "unknown_api_key";
        }
        default: {
          stored.push(`s${index}`);
          const { status, json } = await gateway.post("/capture/", {
            api_key: project.key,
            ...event(`s${index}`),
          });
          return status === 200 && json["accepted"] === 1;
        }
      }
    }),
  );
  expect(answers.filter((good) => !good)).toHaveLength(0);
  for (const project of projects) {
    const frames = await gateway.frames(project);
    const names = frames.flatMap((frame) => frame.events.map((event) => event["event"] as string));
    expect(names.sort()).toEqual(expected.get(project.id)!.sort());
    expect(frames.length).toBeLessThan(expected.get(project.id)!.length / 2);
    expect(new Set(frames.map((frame) => frame.headers["Nats-Msg-Id"])).size).toBe(frames.length);
  }
});
