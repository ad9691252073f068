/** What the Dockerfile and the compose file say fits the package: the archive that npm packs, its command, its verbs, its folders. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { REGISTRY } from "../src/cli/shell/registry.ts";
import { loadSettings } from "../src/config/load-settings.ts";

const at = (path: string): string =>
  fs.readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), "utf8");
const manifest = JSON.parse(at("package.json"));

/** The instructions of the Dockerfile, continued lines joined. */
function instructions(): [string, string][] {
  return at("Dockerfile")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]);
}
const wordsOf = (name: string): string[] =>
  instructions()
    .filter(([word]) => word === name)
    .map(([, rest]) => rest);

/** What it puts into the environment. */
function variables(): Record<string, string> {
  const words = wordsOf("ENV").flatMap((line) => line.split(" "));
  return Object.fromEntries(words.map((word) => word.split("=", 2)));
}

describe("the Dockerfile", () => {
  it("has only known instructions, and begins from an official image of a Node that is used", () => {
    const known = "ARG FROM RUN COPY WORKDIR ENV USER STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD".split(
      " ",
    );
    expect(instructions().filter(([word]) => !known.includes(word))).toEqual([]);
    const base = /^BASE=docker\.io\/library\/node:(\d+)-bookworm-slim$/.exec(
      wordsOf("ARG")[0] ?? "",
    );
    expect(["22", "24"]).toContain(base?.[1]);
    expect(wordsOf("FROM")).toEqual(["${" + "BASE}"]);
  });

  it("copies the archive that npm packs, and nothing else is sent to the engine", () => {
    const packed = `${manifest.name}-${manifest.version}.tgz`;
    const [from = "", to = ""] = (wordsOf("COPY")[0] ?? "").split(" ");
    expect(packed).toMatch(new RegExp(`^${from.replaceAll(".", "\\.").replace("*", ".+")}$`));
    expect(wordsOf("COPY")).toHaveLength(1);
    expect(at(".dockerignore").trim().split("\n").slice(1)).toEqual(["*", `!${from}`]);
    expect(
      wordsOf("RUN").some(
        (line) => line.includes(`npm install --global`) && line.includes(`${to}${from}`),
      ),
    ).toBe(true);
  });

  it("runs the command of the package, with verbs that it has, as a user that is not root", () => {
    const entry: string[] = JSON.parse(wordsOf("ENTRYPOINT")[0] ?? "");
    const [verb = ""]: string[] = JSON.parse(wordsOf("CMD")[0] ?? "");
    const health: string[] = JSON.parse(
      /CMD (\[.*\])$/.exec(wordsOf("HEALTHCHECK")[0] ?? "")?.[1] ?? "",
    );
    expect(Object.keys(manifest.bin)).toContain(entry[0]);
    expect([verb, health[1]].filter((word) => !Object.hasOwn(REGISTRY, word ?? ""))).toEqual([]);
    expect(health[0]).toBe(entry[0]);
    expect(wordsOf("USER")).toEqual(["1000:1000"]);
    expect(variables()["MAILCHUTE_STATE"]).toMatch(`${wordsOf("WORKDIR")[0]}/`);
  });

  it("takes back within minutes what a killed container has left, and not from one that lives", () => {
    const { settings } = loadSettings({ stateDir: "/none", env: variables() });
    expect(settings.lease_ttl_ms).toBe(120_000);
    expect(settings.lease_ttl_ms).toBeGreaterThan(10 * settings.heartbeat_ms);
    expect(at("docs/containers.md")).toContain("The image sets 2 minutes");
  });
});

it("the compose file mounts what the image writes to, and forbids the rest", () => {
  const { mailchute: service } = parse(at("compose.yaml")).services;
  const [dir = ""] = wordsOf("WORKDIR");
  expect(service).toMatchObject({
    build: ".",
    read_only: true,
    tmpfs: ["/tmp"],
    cap_drop: ["ALL"],
  });
  expect(service.volumes).toEqual([`./work:${dir}`]);
  expect(service.pids_limit).toBeGreaterThan(100);
  expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(10);
});

it("the page says how, with the same names", () => {
  const page = at("docs/containers.md");
  expect(page).toContain(`${manifest.name}-${manifest.version}.tgz`);
  for (const option of ["--read-only", "--tmpfs /tmp", "--cap-drop ALL", "no-new-privileges"])
    expect(page).toContain(option);
  expect(manifest.scripts["test:container"]).toBeDefined();
});
