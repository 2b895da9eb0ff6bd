import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

interface AnsweringServer {
  readonly port: number;
  readonly taken: number[];
  readonly bodies: string[];
}

interface TakenBody {
  readonly batch: readonly { readonly properties: { readonly n: number } }[];
}

export async function answeringServer(
  more: object = {},
  before: () => Promise<void> | void = () => {},
): Promise<AnsweringServer> {
  const taken: number[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", async () => {
      const { batch } = JSON.parse(body) as TakenBody;
      bodies.push(body);
      taken.push(...batch.map(({ properties }) => properties.n));
      await before();
      response.end(JSON.stringify({ status: "Ok", accepted: batch.length, dropped: 0, ...more }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, taken, bodies };
}
