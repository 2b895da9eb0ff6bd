// Brings a fresh clone to where `npm run up` works: packages, the pinned Node, the native scanner, dist/, nats-server.
// Runs on the host's Node 18 before anything is installed. Every step is skipped when there is nothing to do, and may
// be interrupted at any point and run again.

import { arePackagesCurrent, buildAddon, buildDist, installPackages, isAddonCurrent } from "./lib/install.mjs";
import { takeLock } from "./lib/lock.mjs";
import { fetchNatsServer, hasNatsServer } from "./lib/nats-server.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { announce, SetupError } from "./lib/project.mjs";

async function setUp() {
  requireNode();
  const giveBack = await takeLock();
  try {
    if (!arePackagesCurrent() || !isAddonCurrent()) requirePrograms();
    installPackages();
    buildAddon();
    buildDist();
    if (!hasNatsServer()) fetchNatsServer();
  } finally {
    giveBack();
  }
}

try {
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  announce(`stopped: ${error.message}`);
  process.exitCode = 1;
}
