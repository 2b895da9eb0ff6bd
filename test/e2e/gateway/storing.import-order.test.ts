import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

describe("requests of the historical stream", () => {
  test("are stored in order through a restart of nats-server", async () => {
    const projects = [await gateway.project(), await gateway.project()];
    const live = await gateway.project();
    const accepted = new Map(projects.map((project) => [project.id, [] as number[]]));
    let restart: Promise<void> | undefined;
    for (let round = 0; round < 60; round++) {
      if (round === 25) restart = gateway.nats.restart();
      const answers = projects.map(async (project) => {
        const batch = Array.from({ length: 50 }, (_, index) => ({
          event: "imported",
          distinct_id: "u",
          timestamp: "2020-01-01",
          properties: { number: round * 50 + index },
        }));
        const { status } = await gateway.post("/batch/", {
          api_key: project.key,
          batch,
          historical_migration: true,
        });
        expect([200, 503]).toContain(status);
        if (status === 200)
          accepted.get(project.id)!.push(...batch.map((event) => event.properties.number));
      });
      answers.push(
        gateway
          .post("/capture/", { api_key: live.key, event: "live", distinct_id: "u" })
          .then(({ status }) => {
            expect([200, 503]).toContain(status);
          }),
      );
      await Promise.all(answers);
    }
    await restart;
    for (const project of projects) {
      const stored = (await gateway.events(project, "historical")).map(
        (event) => event.properties["number"] as number,
      );
      expect(stored).toEqual([...stored].sort((a, b) => a - b));
      expect(new Set(stored).size).toBe(stored.length);
      const wanted = accepted.get(project.id)!;
      expect(wanted.length).toBeGreaterThan(1_000);
      expect(wanted.filter((number) => !stored.includes(number))).toEqual([]);
    }
    expect((await gateway.events(live)).length).toBeGreaterThan(10);
  });

  test("are stored in the order of sending on one connection", async () => {
    const project = await gateway.project();
    const requests = Array.from({ length: 200 }, (_, number) => {
      const body = JSON.stringify({
        api_key: project.key,
        historical_migration: true,
        batch: [{ event: "imported", distinct_id: "u", properties: { number } }],
      });
      return `POST /batch/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    });
    await sendInTurn(requests);
    const stored = (await gateway.events(project, "historical")).map(
      (event) => event.properties["number"],
    );
    expect(stored).toEqual(Array.from({ length: 200 }, (_, number) => number));
  });
});

async function sendInTurn(requests: string[]): Promise<void> {
  const { connect } = await import("node:net");
  const socket = connect(gateway.port, "127.0.0.1");
  const answers = socket[Symbol.asyncIterator]();
  for (const request of requests) {
    socket.write(request);
    const { value } = (await answers.next()) as { value: Buffer };
    expect(value.toString()).toMatch(/^HTTP\/1.1 200 OK/);
  }
  socket.destroy();
}
