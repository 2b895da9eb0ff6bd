// A server that answers every request with a switch of protocols that nobody asked for.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { onTestFinished } from "vitest";

interface SwitchingServer {
  readonly url: string;
  /** What it answers from now on; undefined: 101. */
  answer: string | undefined;
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi";

export async function startSwitchingServer(): Promise<SwitchingServer> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      const { answer } = switcher;
      if (answer === undefined) socket.write(switching);
      else
        socket.end(
          `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`,
        );
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const switcher: SwitchingServer = { url: `http://127.0.0.1:${port}`, answer: undefined };
  return switcher;
}
