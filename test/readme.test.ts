/** README.md, ARCHITECTURE.md and docs/ name every verb, code, setting and field that there is, and nothing that is not; what they show runs as it stands. */
import fs from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { EXIT } from "../src/cli/shell/exit-codes.ts";
import { REGISTRY } from "../src/cli/shell/registry.ts";
import { ErrorSchema, ResultSchema } from "../src/codec/record-schemas.ts";
import { decodeTask, TaskSchema } from "../src/codec/task-codec.ts";
import { COMMAND_NAMES } from "../src/core/command.ts";
import { LIFECYCLE_EVENTS } from "../src/core/events.ts";
import { DEFAULT_SETTINGS } from "../src/core/settings.ts";
import { stateTree } from "../src/core/state-tree.ts";
import {
  asShell,
  blocksOf,
  pagesOfDocs,
  putClaude,
  putRepository,
  runAsNewcomer,
} from "./support/newcomer.ts";
import { tempDir } from "./support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => fs.readFileSync(join(ROOT, path), "utf8");
const readme = read("README.md");
const commands = read("docs/commands.md");
const errors = read("docs/errors.md");
const pageNames = pagesOfDocs();
const pages = pageNames.map(read);
const tasks = read("docs/tasks.md");
const settings = read("docs/settings.md");

/** Error codes that the sources hold as a string. */
function codesInSources(): string[] {
  const codes = new Set<string>();
  for (const name of fs.readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const text = fs.readFileSync(`${ROOT}src/${name}`, "utf8");
    for (const [, code] of text.matchAll(/"(Err[A-Z][A-Za-z]+)"/g)) codes.add(code as string);
  }
  return [...codes].sort();
}

function leaves(value: object, path: string[] = []): [string, unknown][] {
  return Object.entries(value).flatMap(([key, one]): [string, unknown][] =>
    typeof one === "object" && !Array.isArray(one)
      ? leaves(one as object, [...path, key])
      : [[[...path, key].join("."), one]],
  );
}

test("settings.md tells the defaults that differ from the specification as they are", () => {
  const [, table = ""] = settings.split("## Defaults that differ from the specification");
  expect(table).toContain(
    `| \`mailbox_enabled\` | \`false\` | \`${DEFAULT_SETTINGS.mailbox_enabled}\` |`,
  );
  expect(table).toContain("Retention (7 and 30 days)");
  expect(DEFAULT_SETTINGS.retention).toMatchObject({ outbox_days: 7, failed_days: 30 });
  expect(DEFAULT_SETTINGS.lease_ttl_ms).toBe(4 * 60 * 60 * 1000);
  expect(stateTree("/tree").mailbox).toBe("/tree/mailbox");
});

test("the package ships every file that it lists, its licence among them", () => {
  const { license, files } = JSON.parse(read("package.json")) as {
    license: string;
    files: string[];
  };
  for (const file of files) expect(fs.existsSync(join(ROOT, file)), file).toBe(true);
  expect(files).toContain("LICENSE");
  expect(read("LICENSE")).toMatch(
    new RegExp(`^${license} License\\n\\nCopyright \\(c\\) \\d{4} the mailchute authors\\n`),
  );
});

describe("the README", () => {
  test("is short enough for a reader who has one minute", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(121);
  });

  test("leads to the door of docs/, and that to each page", () => {
    expect(readme).toContain("](docs/README.md)");
    const door = read("docs/README.md");
    for (const name of pageNames)
      if (name !== "docs/README.md") expect(door).toContain(`](${name.slice("docs/".length)})`);
  });

  test("names the command of the tests", () => {
    expect(readme).toContain("`npm test` runs the tests");
  });

  test("shows a task that is one", () => {
    const [task] = blocksOf(readme).filter(({ language }) => language === "json");
    const decoded = decodeTask(Buffer.from(task?.text ?? ""), "example");
    expect(decoded.task.id).toBe("example");
    for (const key of Object.keys(JSON.parse(task?.text ?? "{}") as object))
      expect(Object.keys(TaskSchema.properties)).toContain(key);
  });

  test.each(["README.md", "bench/README.md"])(
    "and its benchmark have the figures of the results that they link to: %s",
    async (page) => {
      const [, block = ""] =
        /<!-- bench:begin -->\n([\s\S]*?)<!-- bench:end -->/.exec(read(page)) ?? [];
      const [, dir = ""] = /\]\((\S+)\/results\.md\)/.exec(block) ?? [];
      const { renderNoticed, renderSummary } = (await import(
        pathToFileURL(`${ROOT}bench/report.mjs`).href
      )) as Record<string, (report: unknown, dir: string) => string>;
      const report = JSON.parse(read(join(dirname(page), dir, "results.json")));
      const render = page === "README.md" ? renderNoticed : renderSummary;
      expect(block).toBe(render?.(report, dir));
    },
  );

  test("has the figures of the searches and nights that it links to", () => {
    const reliability = read("docs/reliability.md").replaceAll(",", "");
    const table = readme.slice(readme.indexOf("## Why trust it"), readme.indexOf("## How fast"));
    const plain = table.replaceAll(",", "");
    for (const said of [
      "1424293 states",
      "100 runs 86 supervisors killed 0 failed",
      "4000 tasks",
      "0 problems",
    ]) {
      expect(reliability).toContain(said);
      expect(plain).toContain(said);
    }
    const cuts = [...reliability.matchAll(/\w+ on (?:ext4|xfs): (\d+) passed 0 failed/g)];
    const passed = cuts.reduce((sum, [, count]) => sum + Number(count), 0);
    expect(plain).toContain(`${passed} cuts passed 0 failed`);
    const nights = [
      ...read("docs/nights.md").matchAll(
        /^\| \d+ \| (?:stand-ins|real) \| \d+ \| (\d+) \| (\d+) \|.* 0 \|$/gm,
      ),
    ];
    const [can, landed] = [1, 2].map((at) => nights.reduce((sum, row) => sum + Number(row[at]), 0));
    expect(plain).toContain(`[${nights.length} nights]`);
    expect(plain).toContain(`${landed} of ${can} items`);
  });
});

describe("docs/commands.md", () => {
  test.each(Object.keys(REGISTRY))("names the command %s", (verb) => {
    expect(commands).toMatch(new RegExp(`^\\|.*\`${verb}[ \`]`, "m"));
  });

  test.each(Object.values(EXIT))("explains exit code %i", (code) => {
    expect(commands).toMatch(new RegExp(`\\| ${code} \\|`));
  });
});

describe("the commands as files of docs/commands.md", () => {
  const asFiles = commands.slice(commands.indexOf("## Commands as files"));

  test.each([...COMMAND_NAMES])("names %s", (name) => {
    expect(asFiles).toContain(`\`${name}\``);
  });
});

describe("docs/errors.md", () => {
  test.each(codesInSources())("explains %s", (code) => {
    expect(errors).toMatch(new RegExp(`^\\| \`${code}\` \\|`, "m"));
  });
});

test("nothing tells a person to install from the registry, where the name is not ours", () => {
  const sources = fs
    .readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => read(`src/${name}`));
  const fromRegistry =
    /(?:npm (?:i|install|add|exec)|npx (?:-y|--yes))\b[^\n#`]*[ "'](?:--package )?mailchute(?:@[\w.]+)?(?=[\s`"',]|$)/gm;
  const found = (text: string): string[] => text.match(fromRegistry) ?? [];
  expect(found("npm install -g mailchute\nnpm install -g mailchute@latest")).toHaveLength(2);
  for (const text of [readme, ...pages, ...sources]) expect(found(text)).toEqual([]);
});

test("no page explains an error code that does not exist", () => {
  const known = codesInSources();
  for (const page of [readme, ...pages])
    for (const [, code] of page.matchAll(/`(Err[A-Z]\w+)`/g)) expect(known).toContain(code);
});

describe("ARCHITECTURE.md", () => {
  const architecture = read("ARCHITECTURE.md");

  test("is short enough for a reader who has ten minutes", () => {
    expect(architecture.split("\n").length).toBeLessThanOrEqual(185);
  });
});

describe("docs/tasks.md", () => {
  const fields = tasks.slice(tasks.indexOf("## Task file"), tasks.indexOf("## The same task"));

  test.each(Object.keys(TaskSchema.properties))("explains the field %s", (field) => {
    expect(fields).toMatch(new RegExp(`^\\|[^|]*\`${field}(\\.\\w+)?\``, "m"));
  });
});

describe("docs/results.md", () => {
  const rows = read("docs/results.md").split("\n");

  test.each([
    ["R", ResultSchema],
    ["E", ErrorSchema],
  ] as const)("has a row for each field of the records %s", (letter, schema) => {
    for (const field of Object.keys(schema.properties)) {
      const row = rows.find((line) => line.split("|")[1]?.includes(`\`${field}\``));
      expect(row?.split("|")[2], field).toContain(letter);
    }
  });
});

describe("docs/events.md", () => {
  const events = read("docs/events.md").split("## Recipes")[0];

  test.each([...LIFECYCLE_EVENTS])("names the event %s", (name) => {
    expect(events).toContain(`\`${name}\``);
  });
});

describe("docs/settings.md", () => {
  test.each(leaves(DEFAULT_SETTINGS))("lists the setting %s with its default", (key, value) => {
    const shown = Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
    const row = settings.split("\n").find((line) => line.startsWith(`| \`${key}\` |`));
    expect(row?.split("|")[2]?.trim().replaceAll("`", "")).toBe(shown);
    if (!Array.isArray(value))
      expect(row).toContain(`MAILCHUTE_${key.replaceAll(".", "_").toUpperCase()}\``);
  });
});

const isThere = (program: string): boolean =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .some((dir) => fs.existsSync(join(dir === "" ? "." : dir, program)));

const STEPS_MS_MAX = 600_000;

/** What the agent of README.md works on. */
function putNight(dir: string): void {
  putRepository(join(dir, "project"), {
    "greeting.txt": "Hello\n",
    "todo.md": "- [ ] Greet in German\n- [ ] Write the manual\n",
    "package.json": '{"scripts": {"test": "test -s greeting.txt"}}\n',
  });
  const work = (command: string): object[] => [{ run: command }, { say: "Done." }];
  putClaude(dir, {
    tasks: {
      "Greet in German": [work("echo Guten Tag > greeting.txt")],
      "Write the manual": [work("echo Read me. > manual.txt")],
    },
  });
}

test.skipIf(!isThere("jq") || !isThere("python3") || !isThere("git"))(
  "a newcomer who runs all that the README shows, in its order, gets what it says; then the examples of docs/tasks.md and docs/events.md",
  async () => {
    const dir = tempDir();
    putNight(dir);
    const shown = blocksOf(readme).map(({ language, text }) => ({
      language,
      // It is installed already, and this directory is no clone.
      text: text.replace(/^npm ci .*$/m, "npx mailchute init >&2"),
    }));
    const drops = blocksOf(
      tasks.slice(tasks.indexOf("## Dropping a task"), tasks.indexOf("## Task file")),
    );
    const recipes = blocksOf(read("docs/events.md").split("## Recipes")[1] ?? "");
    const output = await runAsNewcomer(
      dir,
      [
        ...shown.map(asShell),
        "unset MAILCHUTE_STATE",
        ...drops.map(asShell),
        "npx mailchute enqueue --id broken --max-attempts 1 -- false",
        "npx mailchute run --drain || test $? = 1",
        ...recipes.map(asShell),
      ].join("\n"),
      { HOME: dir },
    );
    const outbox = join(dir, "state", "mailbox", "outbox");
    const done = fs.readdirSync(outbox);
    for (const id of ["now", "answer", "after-answer"]) expect(done).toContain(`${id}_result.json`);
    const night = fs.readdirSync(join(dir, "night", "mailbox", "outbox"));
    expect(night.filter((name) => name.endsWith(".land_result.json"))).toHaveLength(2);
    expect(output).toMatch(/2 landed/);
    expect(output).toMatch(/^answer\t1\t/m);
    expect(output).toMatch(/^broken\tErrExit\t/m);
    expect(output).toMatch(/^1\texit$/m);
    expect(output).toMatch(/^\d+\tanswer$/m);
    expect(output).toMatch(/^ *\d+ \d{4}-\d\d-\d\dT\d\d$/m);
  },
  STEPS_MS_MAX,
);

test(
  "the plan of docs/plan.md can be read, its commands do what they say, and the example of docs/library.md runs",
  async () => {
    const dir = tempDir();
    const blocks = blocksOf(read("docs/plan.md"));
    const plan = blocks.find(({ language }) => language === "yaml");
    await runAsNewcomer(
      dir,
      [
        ...blocks.map(asShell),
        "npx mailchute init",
        `cat > state/roadmap.yaml <<'YAML'\n${plan?.text}YAML`,
        "npx mailchute roadmap check",
        ...blocksOf(read("docs/library.md")).map(asShell),
      ].join("\n"),
    );
    const outbox = fs.readdirSync(join(dir, "state", "mailbox", "outbox"));
    expect(outbox.filter((name) => name.endsWith("_result.json"))).toHaveLength(1);
    const site = join(dir, "site");
    const done = fs.readdirSync(join(site, "mailbox", "outbox"));
    for (const id of ["plan-000", "build", "test", "report"])
      expect(done).toContain(`${id}_result.json`);
    const events = fs.readFileSync(join(site, "analytics", "supervisor_lifecycle.jsonl"), "utf8");
    expect(events).toContain('"replan_finished"');
  },
  STEPS_MS_MAX,
);
