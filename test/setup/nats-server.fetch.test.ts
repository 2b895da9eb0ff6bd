// apt-get and dpkg-deb are stand-ins; `offers` lists the content of each suite.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";
import { root, write } from "./setup-kit.ts";

const codename = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
const aptGet = `#!/bin/sh
suite=$([ ! -f parts/penstock.sources ] || sed -n 's/^Suites: //p' parts/penstock.sources)
case "$*" in
  *indextargets*) cat HOME/targets ;;
  *update*) echo "$suite" >> HOME/asked; sed -n 's/^URIs: //p' parts/penstock.sources >> HOME/mirrors; [ ! -f HOME/away ] || { echo "E: no route to the archive"; exit 100; } ;;
  *download*) version=$(sed -n "s/^$suite //p" HOME/offers); [ -n "$version" ] && echo "$version" > nats-server.deb ;;
esac
`;
const dpkgDeb = `#!/bin/sh
mkdir -p "$3/usr/sbin"
printf '#!/bin/sh\\necho "nats-server: v%s"\\n' "$(cat "$2")" > "$3/usr/sbin/nats-server"
chmod +x "$3/usr/sbin/nats-server"
`;
const targets = [
  "http://vendor.example/apt stable main",
  "http://mirror.example/security bookworm-security main",
  `http://mirror.example/debian ${codename} contrib`,
  `http://mirror.example/debian ${codename} main`,
].join("\n");
const bring = `
import { createRunner } from "./scripts/lib/runner.mjs";
import { bringNatsServer, requireNatsServer } from "./scripts/lib/nats-server.mjs";
requireNatsServer();
await bringNatsServer(createRunner({ noteGroups() {} }));
`;

interface Host {
  readonly folder: string;
  setUp(env?: Record<string, string>): { readonly said: string; readonly status: number | null };
  asked(): string[];
  mirrors(): string[];
  versions(): string[];
}

function hostWith(offers: string, { hasApt = true } = {}): Host {
  const folder = temporaryFolder();
  cpSync(path.join(root, "scripts"), path.join(folder, "scripts"), { recursive: true });
  write(path.join(folder, "bring.mjs"), bring);
  write(path.join(folder, "offers"), offers);
  write(path.join(folder, "targets"), `${targets}\n`);
  const bin = path.join(folder, "bin");
  const standIns = hasApt
    ? { "apt-get": aptGet, "dpkg-deb": dpkgDeb, dpkg: "#!/bin/sh\necho amd64\n" }
    : {};
  for (const [name, text] of Object.entries({
    ...standIns,
    node: `#!/bin/sh\nexec ${process.execPath} "$@"\n`,
  })) {
    write(path.join(bin, name), text.replaceAll("HOME", folder));
    chmodSync(path.join(bin, name), 0o755);
  }
  for (const name of ["sh", "sed", "cat", "mkdir", "chmod"])
    symlinkSync(`/bin/${name}`, path.join(bin, name));
  const asked = path.join(folder, "asked");
  return {
    folder,
    setUp(env = {}) {
      const done = spawnSync(process.execPath, ["bring.mjs"], {
        cwd: folder,
        env: { PATH: bin, ...env },
        encoding: "utf8",
      });
      return { said: done.stdout + done.stderr, status: done.status };
    },
    asked() {
      const lines = existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : [];
      rmSync(asked, { force: true });
      return lines;
    },
    mirrors: () => readFileSync(path.join(folder, "mirrors"), "utf8").trim().split("\n"),
    versions() {
      const cache = path.join(folder, ".cache/nats-server");
      return existsSync(cache) ? readdirSync(cache).sort() : [];
    },
  };
}

function givenCached(host: Host, version: string): void {
  const file = path.join(host.folder, ".cache/nats-server", version, "nats-server");
  write(file, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  chmodSync(file, 0o755);
}

describe("set-up", () => {
  test("fetches nats-server from the newest suite of the distribution", () => {
    const host = hostWith("forky 2.15.1\ntrixie 2.10.27\n");
    expect(host.setUp().status).toBe(0);
    expect(host.versions()).toEqual(["2.15.1"]);
    expect(host.asked()).toEqual(["forky"]);
    expect(host.setUp()).toEqual({ said: "", status: 0 });
    expect(host.asked()).toEqual([]);
  });

  test("fetches nats-server from the next suite if the newest suite lacks nats-server", () => {
    const host = hostWith("trixie 2.10.27\n");
    expect(host.setUp().status).toBe(0);
    expect(host.versions()).toEqual(["2.10.27"]);
    expect(host.asked()).toEqual(["forky", "trixie"]);
  });

  test("fetches no nats-server if an earlier set-up fetched one", () => {
    const host = hostWith("forky 2.15.1\ntrixie 2.10.27\n");
    givenCached(host, "2.10.27");
    expect(host.setUp()).toEqual({ said: "", status: 0 });
    expect(host.asked()).toEqual([]);
  });

  test("fetches nats-server only from the mirror of the host's main archive", () => {
    const host = hostWith("forky 2.15.1\n");
    expect(host.setUp().status).toBe(0);
    expect(host.mirrors()).toEqual(["http://mirror.example/debian"]);
    const other = hostWith("forky 2.15.1\n");
    write(path.join(other.folder, "targets"), "http://a.example/x bookworm-security main\n");
    expect(other.setUp().said).toContain("the host's apt sources name no main archive");
  });

  test("reports that nats-server is missing if apt is not available", () => {
    const host = hostWith("", { hasApt: false });
    const { said, status } = host.setUp();
    expect(status).toBe(1);
    expect(said).toContain("no nats-server of 2.10 or newer was found");
    expect(said).toContain("PENSTOCK_NATS_SERVER=/path/to/nats-server");
  });

  test("continues without nats-server if PENSTOCK_NATS_URL names an external server", () => {
    const env = { PENSTOCK_NATS_URL: "nats://nats-1:4222" };
    const said = expect.stringContaining("PENSTOCK_NATS_URL names one that runs elsewhere");
    expect(hostWith("", { hasApt: false }).setUp(env)).toEqual({ said, status: 0 });
    const host = hostWith("forky 2.15.1\n");
    write(path.join(host.folder, "away"), "");
    expect(host.setUp(env)).toEqual({ said, status: 0 });
    expect(host.setUp({ PENSTOCK_NATS_URL: "" }).status).toBe(1);
    // If a nats-server is available, set-up fetches it as usual, because the tests and `up` need
    // it.
    rmSync(path.join(host.folder, "away"));
    expect(host.setUp(env).status).toBe(0);
    expect(host.versions()).toEqual(["2.15.1"]);
  });
});
