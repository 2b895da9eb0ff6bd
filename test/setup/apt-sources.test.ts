// The host's apt sources are understood in both of their formats, and the main archive is told from
// the rest.

import path from "node:path";
import { describe, expect, test } from "vitest";

interface Entry {
  readonly uri: string;
  readonly suites: string[];
  readonly components: string[];
  readonly signedBy: string | undefined;
}

interface AptSources {
  parseOneLine(text: string): Entry[];
  parseDeb822(text: string): Entry[];
  pickMainArchive(entries: Entry[], codename: string): Entry | undefined;
}

const script = path.resolve(import.meta.dirname, "../../scripts/lib/apt-sources.mjs");
const { parseOneLine, parseDeb822, pickMainArchive } = (await import(script)) as AptSources;

const deb822 = `# The main archive
Types: deb deb-src
URIs: http://mirror.example/debian
# a comment in the middle
Suites: bookworm bookworm-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://vendor.example/apt
Suites: nodistro
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
`;

const oneLine = `# deb http://off.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.example/apt stable main
deb http://mirror.example/debian-security bookworm-security main # updates
deb http://mirror.example/debian/ bookworm main contrib
`;

describe("apt sources are read", () => {
  test("deb822", () => {
    const entries = parseDeb822(deb822);
    expect(entries.map(({ uri }) => uri)).toEqual([
      "http://mirror.example/debian",
      "http://mirror.example/debian-security",
      "http://vendor.example/apt",
    ]);
    expect(entries[0]).toMatchObject({
      suites: ["bookworm", "bookworm-updates"],
      components: ["main", "contrib"],
      signedBy: "/usr/share/keyrings/debian-archive-keyring.gpg",
    });
    expect(entries[2]?.signedBy).toBeUndefined();
    expect(pickMainArchive(entries, "bookworm")?.uri).toBe("http://mirror.example/debian");
  });

  test("one line each", () => {
    const entries = parseOneLine(oneLine);
    expect(entries).toHaveLength(3);
    expect(entries[0]?.signedBy).toBe("/etc/apt/keyrings/vendor.gpg");
    expect(pickMainArchive(entries, "bookworm")).toMatchObject({
      uri: "http://mirror.example/debian/",
      components: ["main", "contrib"],
    });
  });

  test("nothing that would do", () => {
    expect(
      pickMainArchive(parseOneLine("deb http://a.example/x bookworm-security main"), "bookworm"),
    ).toBeUndefined();
  });
});
