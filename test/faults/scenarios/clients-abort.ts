// Clients disconnect at every stage of a request. Other clients must not be affected.

import { connect, type Socket } from "node:net";
import type { Scenario, ScenarioContext } from "../scenario.ts";

const stages = ["part of the head", "the head", "half of the body", "the body"] as const;
const eventsEach = { small: 20, large: 2_000 };
const atOnce = 4;
const pauseMs = 5;

export const clientsAbort: Scenario = {
  name: "clients-abort",
  title: "clients abort in the head, after it, in the body, and before the answer",
  topology: "single",
  faultMs: { short: 1_500, full: 10_000 },
  mayRefuse: false,
  mustRecover: true,
  async run(context) {
    const untilMs = performance.now() + context.faultMs;
    let aborted = 0;
    const abortOnAndOn = async (client: number): Promise<void> => {
      for (let turn = client; performance.now() < untilMs; turn++) {
        const large = turn % 16 === 0;
        await abortAt(
          stages[turn % stages.length]!,
          large ? eventsEach.large : eventsEach.small,
          context,
        );
        aborted++;
        await context.hold(pauseMs);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, (_, client) => abortOnAndOn(client)));
    context.note(`${aborted} requests aborted`);
  },
};

async function abortAt(
  stage: (typeof stages)[number],
  events: number,
  context: ScenarioContext,
): Promise<void> {
  const { gateway, givenUpBody } = context;
  const body = givenUpBody(events);
  const head = Buffer.from(
    `POST /batch/ HTTP/1.1\r\nHost: gateway\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  const whole = Buffer.concat([head, body]);
  const bytes = {
    "part of the head": 20,
    "the head": head.length,
    "half of the body": head.length + Math.floor(body.length / 2),
    "the body": whole.length,
  }[stage];
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  try {
    await sent(socket, whole.subarray(0, bytes));
  } finally {
    socket.resetAndDestroy();
  }
}

function sent(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
