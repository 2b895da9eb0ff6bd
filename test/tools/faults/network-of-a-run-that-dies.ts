import { spawn } from "node:child_process";
import { createNetworkOfNamespaces } from "../../faults/network-of-namespaces.ts";

const network = createNetworkOfNamespaces([1]);
const [program, ...args] = [...network.placeOf(0).command, "sleep", "600"];
const sleeper = spawn(program!, args, { stdio: "ignore" });
process.on("SIGTERM", () => process.exit());
sleeper.once("spawn", () => process.stdout.write(`made ${sleeper.pid}\n`));
setInterval(() => {}, 60_000);
