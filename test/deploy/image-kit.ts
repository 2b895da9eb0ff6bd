// Builds the image of the Dockerfile with buildah and runs it with podman, as root on Debian. The
// base images are made of Debian packages, so no registry is needed.

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findNatsServer } from "../kit/nats-server.ts";
import { root } from "./files-kit.ts";

const basePackages =
  "base-files,ca-certificates,libc6,libgcc-s1,libgomp1,libssl3,libstdc++6,media-types,netbase,tzdata";
const buildPackages = "ca-certificates,g++,make,python3";
const certificates = "/etc/ssl/certs/ca-certificates.crt";

export const image = "localhost/penstock:test";

export class ImageKit {
  readonly folder = mkdtempSync(path.join(tmpdir(), "penstock-test-image-"));
  readonly #mounts: ChildProcess;

  constructor() {
    // In the mount namespace, no mount of the storage remains. Debian 12's crun rejects cgroups of
    // both versions together.
    const hybrid = "/sys/fs/cgroup/unified";
    const script = `! mountpoint -q ${hybrid} || umount ${hybrid}; exec sleep infinity`;
    this.#mounts = spawn("unshare", ["-m", "--propagation", "private", "sh", "-c", script], {
      stdio: "ignore",
    });
  }

  remove(): void {
    this.podman("rm", "--all", "--force");
    this.#mounts.kill();
    // The mounts end a moment after their namespace.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }

  buildah(...args: string[]): string {
    return run("nsenter", this.#inside("buildah", args));
  }

  podman(...args: string[]): string {
    return run("nsenter", this.podmanCommand(...args));
  }

  logs(name: string): string {
    const done = spawnSync("nsenter", this.podmanCommand("logs", name), { encoding: "utf8" });
    return done.stdout + done.stderr;
  }

  podmanCommand(...args: string[]): string[] {
    return this.#inside("podman", ["--cgroup-manager", "cgroupfs", ...args]);
  }

  #inside(program: string, args: readonly string[]): string[] {
    const storage = ["--root", path.join(this.folder, "root"), "--runroot", `${this.folder}/run`];
    return ["-t", String(this.#mounts.pid), "-m", program, ...storage, ...args];
  }

  build(): void {
    this.#baseImage("base", this.#debian("base", "extract", basePackages, []));
    const npm = path.dirname(
      path.dirname(realpathSync(run("sh", ["-c", "command -v npm"]).trim())),
    );
    const node = realpathSync(path.join(root, "node_modules/.bin/node"));
    const hooks = [
      `copy-in ${node} /usr/local/bin`,
      `mkdir -p "$1/usr/local/lib/node_modules" && cp -r ${npm} "$1/usr/local/lib/node_modules/npm"`,
      `ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"`,
      `copy-in ${certificates} ${path.dirname(certificates)}`,
    ];
    this.#baseImage("build", this.#debian("build", "minbase", buildPackages, hooks), [
      "--env",
      `NODE_EXTRA_CA_CERTS=${certificates}`,
      "--env",
      "PATH=/usr/local/bin:/usr/bin:/bin",
    ]);
    const nats = path.join(this.folder, "nats/usr/local/bin");
    mkdirSync(nats, { recursive: true });
    run("cp", [findNatsServer(), path.join(nats, "nats-server")]);
    this.#baseImage("nats", path.join(this.folder, "nats"));
    const bases = ["build", "nats", "base"].flatMap((name) => [
      "--build-arg",
      `${name.toUpperCase()}_IMAGE=localhost/penstock-${name}`,
    ]);
    const container = path.join(root, "deploy", "container");
    this.buildah(
      "build",
      "--isolation",
      "chroot",
      "--format",
      "docker",
      ...bases,
      "--ignorefile",
      path.join(container, "Dockerfile.dockerignore"),
      "-f",
      path.join(container, "Dockerfile"),
      "-t",
      image,
      root,
    );
  }

  start(name: string, options: readonly string[], ...command: string[]): void {
    this.podman("run", "--detach", "--name", name, ...limits, ...options, image, ...command);
  }

  tryRun(options: readonly string[], ...command: string[]): { code: number; said: string } {
    try {
      const args = ["run", "--rm", ...limits, ...options, image, ...command];
      return { code: 0, said: this.podman(...args) };
    } catch (error) {
      const { status, stderr, stdout } = error as { status: number } & Record<string, string>;
      return { code: status, said: `${stdout}${stderr}` };
    }
  }

  #debian(name: string, variant: string, packages: string, hooks: readonly string[]): string {
    const tar = path.join(this.folder, `${name}.tar`);
    const customized = hooks.map((hook) => `--customize-hook=${hook}`);
    const what = [`--variant=${variant}`, `--include=${packages}`, ...customized];
    run("mmdebstrap", ["--quiet", ...what, "bookworm", tar]);
    return tar;
  }

  #baseImage(name: string, content: string, config: readonly string[] = []): void {
    const container = this.buildah("from", "scratch").trim();
    this.buildah("add", "--quiet", container, content, "/");
    if (config.length > 0) this.buildah("config", ...config, container);
    this.buildah(
      "commit",
      "--quiet",
      "--format",
      "docker",
      container,
      `localhost/penstock-${name}`,
    );
    this.buildah("rm", container);
    rmSync(content, { recursive: true });
  }
}

/** podman's own limits exceed the limits of this process on some hosts. Timers need systemd. */
const limits = [
  "--network",
  "host",
  "--health-interval",
  "disable",
  "--ulimit",
  "nofile=4096:4096",
  "--ulimit",
  "nproc=1000:1000",
];

function run(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: "pipe", maxBuffer: 2 ** 28 });
  } catch (error) {
    const { code, status } = error as { code?: string; status?: number };
    if (code !== "ENOENT" && status !== 127) throw error;
    throw new Error(`run ${program}: not found: apt-get install mmdebstrap, and run this as root`, {
      cause: error,
    });
  }
}
