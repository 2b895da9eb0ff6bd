import { chmodSync, chownSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { SqliteStore } from "../../../src/readers/effects/store/sqlite/store.ts";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

const isRoot = process.getuid?.() === 0;
const owner = { uid: 65_534, gid: 65_534 };

test.each(["rebuild", "verify"])(
  "effects %s as root creates files only where the owner of the database could",
  async (command) => {
    const [folder, elsewhere] = [temporaryFolder(), temporaryFolder()];
    const file = path.join(folder, "effects.sqlite");
    const store = new SqliteStore({ file });
    await store.open();
    await store.close();
    const names = [folder, ...readdirSync(folder).map((name) => path.join(folder, name))];
    if (isRoot) for (const name of names) chownSync(name, owner.uid, owner.gid);
    // The permissions of this folder exclude any user but root in the same way.
    chmodSync(elsewhere, 0o500);
    const target = path.join(elsewhere, "made");
    const lock = `${file}${command === "verify" ? ".verify" : ""}.writer-lock`;
    rmSync(lock, { force: true });
    symlinkSync(target, lock);
    const at = ["--effects-url", `sqlite:${file}`, "--nats-url", "nats://127.0.0.1:1"];
    const child = penstock("effects", command, ...at);
    expect(await ended(child)).toBe(1);
    expect(child.said.err).toMatch(/writer-lock.*remove/);
    expect(readdirSync(elsewhere)).toEqual([]);
    if (isRoot) expect(child.said.err).toContain("running as user 65534");
    rmSync(lock);
    const again = penstock("effects", command, ...at);
    // It stops because NATS does not answer, and leaves the owner's files.
    expect(await ended(again)).toBe(1);
    for (const name of readdirSync(folder))
      expect(statSync(path.join(folder, name)).uid, name).toBe(
        isRoot ? owner.uid : process.getuid?.(),
      );
  },
);
