// One end of a network. Listens on the given ports, and executes commands from standard input:
// `dial <url>`, `say <text>` on the last dialled connection, and `reply <text>` on all incoming
// connections. Prints each received line, and when a dialled connection opens or closes.

import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";

const [host = "", ...ports] = process.argv.slice(2);
const callers = new Set<Socket>();
let dialled: Socket | undefined;

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

function listen(socket: Socket): void {
  createInterface({ input: socket })
    .on("line", (line) => tell(`heard ${line.length > 100 ? line.length : line}`))
    .on("error", () => {});
}

function dial(url: URL): void {
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("connect", () => tell("connected"));
  socket.on("close", () => tell("ended"));
  listen(socket);
  dialled = socket;
}

for (const port of ports) {
  const listener = createServer((socket) => {
    callers.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => callers.delete(socket));
    listen(socket);
  });
  listener.listen(Number(port), host, () => tell(`listens on ${port}`));
}
createInterface({ input: process.stdin }).on("line", (line) => {
  const [verb, rest = ""] = line.split(" ", 2);
  if (verb === "dial") dial(new URL(rest));
  else if (verb === "say") dialled?.write(`${rest}\n`);
  else for (const caller of callers) caller.write(`${rest}\n`);
});
process.stdin.on("close", () => process.exit());
tell("ready");
