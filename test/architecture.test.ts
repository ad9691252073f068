/** Who may import whom, as ARCHITECTURE.md says: arrows go downwards, and the core stands alone. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { pagesOfDocs } from "./support/newcomer.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SRC = join(ROOT, "src");

/**
 * Rooms that a room may import beside itself. A room is a folder of src; where a folder has rooms of its own, those are named
 * one by one. A new room needs a line here, with its place in ARCHITECTURE.md.
 */
const BASE = ["core", "codec", "host"];
const RECORDS = [...BASE, "config", "journal", "kv", "questions"];
const TASKS = [...RECORDS, "mailbox"];
/** What each service of the supervisor works with. */
const SERVICE = [...TASKS, "supervisor/environment"];
const QUEUE_BELOW = ["environment", "inbox", "pool", "maintenance", "documents"].map(
  (room) => `supervisor/${room}`,
);
const SUPERVISOR_ROOMS = ["queue", "control", "status"].map((room) => `supervisor/${room}`);
const SHELL = [...TASKS, "agents", "library", "text", "view", "worker"];
const CLI_ROOMS = ["shell", "text", "wait", "enqueue", "status"].map((room) => `cli/${room}`);
/** Housekeeping that can be asked for by hand, too. */
const BY_HAND = ["supervisor/maintenance"];

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  codec: ["core"],
  host: ["core"],
  text: ["core"],
  config: BASE,
  journal: ["core", "host"],
  kv: [...BASE, "journal"],
  questions: ["core", "host"],
  // Signed links in messages: one part makes them, another one serves them.
  links: ["core", "host"],
  // Calls of git, and nothing else.
  git: ["core", "host"],
  // The only folder that moves mailbox files: it must not know who asks.
  mailbox: BASE,
  // What other programs import: a state tree, and the mailbox with the journal lines of what they do.
  library: [...TASKS, "agents", "view", "worker", "supervisor"],
  agents: ["core", "host", "journal", "questions"],
  // The read model: what the command line, and later a page, shows of a state tree. It changes nothing.
  view: [...TASKS, "agents", "git", "text"],
  worker: [...TASKS, "agents"],
  // The supervisor starts workers and speaks to them, and never runs a task itself.
  "supervisor/environment": [...TASKS, "worker"],
  "supervisor/documents": TASKS,
  // Which of several agents had the task of a dead worker.
  "supervisor/maintenance": [...SERVICE, "agents"],
  "supervisor/inbox": SERVICE,
  "supervisor/pool": [...TASKS, "worker"],
  "supervisor/queue": [...TASKS, ...QUEUE_BELOW],
  // `interrupt` puts a text into the box of messages of a coding agent's run.
  "supervisor/control": [...TASKS, ...QUEUE_BELOW, "supervisor/queue", "agents"],
  "supervisor/status": [...TASKS, ...QUEUE_BELOW, "supervisor/queue"],
  supervisor: [...TASKS, ...QUEUE_BELOW, ...SUPERVISOR_ROOMS],
  "cli/shell": [...SHELL, "cli/commands"],
  "cli/text": SHELL,
  "cli/wait": [...SHELL, "cli/shell", "cli/text"],
  "cli/status": [...SHELL, "cli/shell"],
  "cli/enqueue": [...SHELL, "cli/shell", "cli/wait"],
  "cli/commands": [...SHELL, ...CLI_ROOMS, ...BY_HAND, "supervisor"],
  cli: [...SHELL, "cli/shell"],
  // Lists of parts: see LISTS.
  app: ["agents", "cli/shell", "cli/enqueue", "library", "mailbox", "supervisor", "view", "worker"],
  // A part imports what is below it, and no other part.
  "parts/cluster": [...TASKS, ...SHELL, ...CLI_ROOMS, "agents", "supervisor", ...QUEUE_BELOW],
  "parts/groups": [
    ...SHELL,
    ...CLI_ROOMS,
    "git",
    "supervisor",
    ...QUEUE_BELOW,
    "supervisor/control",
  ],
  "parts/accounts": [...TASKS, "agents", "supervisor", ...QUEUE_BELOW],
  "parts/callbacks": ["codec", "core", "mailbox"],
  "parts/batch": [...TASKS, "agents", "worker"],
  "parts/attach": [...TASKS, "agents", "view", "supervisor", ...QUEUE_BELOW],
  "parts/breaker": [...TASKS, "agents", "supervisor", ...QUEUE_BELOW],
  "parts/fallback": [...TASKS, "agents", "supervisor", ...QUEUE_BELOW],
  "parts/chat": [...SHELL, ...CLI_ROOMS, "cli/commands"],
  "parts/costs": [...SHELL, ...CLI_ROOMS],
  "parts/acp": ["core", "host", "agents"],
  "parts/codex": [...TASKS, "agents"],
  "parts/claude": ["core", "host", "agents"],
  "parts/mail": [...SHELL, ...CLI_ROOMS, "git", "supervisor", ...QUEUE_BELOW],
  "parts/demo": [...SHELL, ...CLI_ROOMS],
  "parts/doctor": [...SHELL, ...CLI_ROOMS, ...BY_HAND, "git"],
  "parts/health": [...SHELL, ...CLI_ROOMS],
  "parts/landing": [...SHELL, ...CLI_ROOMS, "git", "supervisor", ...QUEUE_BELOW],
  "parts/list": [...SHELL, ...CLI_ROOMS],
  "parts/mcp": [...SHELL, ...CLI_ROOMS],
  "parts/memory": [...TASKS, "agents", "supervisor", ...QUEUE_BELOW],
  "parts/metrics": [...SHELL, ...CLI_ROOMS, "supervisor", ...QUEUE_BELOW],
  "parts/notify": ["links", ...SHELL, ...CLI_ROOMS, "supervisor", ...QUEUE_BELOW],
  "parts/report": [...SHELL, ...CLI_ROOMS],
  "parts/schedules": [...SHELL, ...CLI_ROOMS, "supervisor", ...QUEUE_BELOW],
  "parts/meter": ["core", "host", "agents"],
  "parts/run-limits": ["core", "host", "agents", "supervisor", "supervisor/environment"],
  "parts/sandbox": ["core", "host", "agents", "supervisor", "supervisor/environment"],
  "parts/service": [...SHELL, ...CLI_ROOMS, "supervisor", ...QUEUE_BELOW],
  "parts/stats": [...SHELL, ...CLI_ROOMS],
  "parts/top": [...SHELL, ...CLI_ROOMS, "cli/commands"],
  "parts/web": ["links", ...SHELL, ...CLI_ROOMS, "git"],
  "parts/why": [...SHELL, ...CLI_ROOMS],
  "parts/questions": [...TASKS, "supervisor", ...QUEUE_BELOW],
  "parts/worktrees": [...SHELL, ...CLI_ROOMS, "git", "supervisor", ...QUEUE_BELOW],
  "parts/plugins": [...TASKS, "agents", "supervisor", "supervisor/environment"],
  "parts/plan": [...SHELL, ...CLI_ROOMS, "supervisor", ...QUEUE_BELOW, ...SUPERVISOR_ROOMS],
};
/** Folders in a room, ground first; the room's own files stand above them. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  mailbox: "files claim find submit settle retry recover commands clean".split(" "),
  "parts/mail": "scope store agents send roots post exits briefing requests delivery verbs".split(
    " ",
  ),
};
/** The rooms and files that name parts, and nothing else does; and who may import those of `app/`: where a process begins. */
const LISTS = ["app", "cli/shell/registry.ts"];
const STARTS = [
  "index.ts",
  "supervisor.ts",
  "worker/entry.ts",
  ...[
    "run",
    "worker",
    "clean",
    "control",
    "show",
    "attach",
    "enqueue",
    "answer",
    "logs",
    "say",
    "completion",
  ].map((verb) => `cli/commands/${verb}.ts`),
  "cli/shell/foreign-verbs.ts",
  "cli/wait/open-tasks.ts",
  "cli/enqueue/warnings.ts",
  "parts/cluster/verbs/bridge.ts",
  "parts/doctor/agents.ts",
  "parts/doctor/night.ts",
  "cli/text/agent-lines.ts",
  "parts/report/command.ts",
  "parts/top/task-loader.ts",
  "parts/web/find-page.ts",
  "parts/why/command.ts",
];

function sources(folder: string): string[] {
  return fs
    .readdirSync(`${SRC}/${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${SRC}/${folder}/${name}`);
}

/** Files with code in folders of the package, as paths from its root; bench has packages of its own. */
function programs(folders: readonly string[]): string[] {
  const paths = folders.flatMap((folder) =>
    fs
      .readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name}`),
  );
  return paths.filter(
    (path) => /\.[cm]?[jt]s$/.test(path) && !path.split("/").includes("node_modules"),
  );
}

/** The room of a file, by its path below src; "" for files directly in src. */
function roomOf(file: string): string {
  const [first = "", second = "", ...rest] = file.split(sep);
  if (second === "") return "";
  const room = `${first}/${second}`;
  const hasRooms = first === "parts" || Object.hasOwn(ALLOWED, room);
  return rest.length > 0 && hasRooms ? room : first;
}

/** Files of src that a file imports, by their paths below src. */
function importsOf(path: string): string[] {
  const text = fs.readFileSync(path, "utf8");
  return [...text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map(([, target = ""]) =>
    relative(SRC, resolve(dirname(path), target)),
  );
}

describe("the dependency rule", () => {
  test.each(Object.keys(ALLOWED))("src/%s imports only what lies below it", (room) => {
    for (const path of sources(room)) {
      const file = relative(SRC, path);
      if (roomOf(file) !== room) continue;
      for (const target of importsOf(path)) {
        const other = roomOf(target);
        if (other === room || other === "") continue;
        const isList = LISTS.includes(file) || LISTS.includes(room);
        if (isList && other.startsWith("parts/")) continue;
        if (other === "app") expect(STARTS, `${file} imports ${target}`).toContain(file);
        else expect(ALLOWED[room], `${file} imports ${target}`).toContain(other);
      }
    }
  });

  test.each(Object.keys(FOLDERS))("in src/%s a folder imports only those before it", (part) => {
    const order = FOLDERS[part] ?? [];
    const rooms = fs.readdirSync(join(SRC, part), { withFileTypes: true });
    const folders = rooms.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect(folders.sort()).toEqual([...order].sort());
    for (const path of order.flatMap((room) => sources(`${part}/${room}`)))
      for (const target of importsOf(path)) {
        const [own, other] = [relative(join(SRC, part), path), relative(part, target)];
        if (other.startsWith("..")) continue;
        const [from = "", to = ""] = [own.split(sep)[0], other.split(sep)[0]];
        expect(order.slice(0, order.indexOf(from) + 1), `${own} imports ${other}`).toContain(to);
      }
  });

  test("every room has its line, and no line is without a room", () => {
    const rooms = new Set(sources(".").map((path) => roomOf(relative(SRC, resolve(path)))));
    rooms.delete("");
    expect([...rooms].sort()).toEqual(Object.keys(ALLOWED).sort());
  });
});

/** What can be imported from Node without a file system, a clock or chance coming with it. */
const HARMLESS: ReadonlySet<string> = new Set(["node:path", "node:buffer"]);

test.each(["core", "codec"])("src/%s has no file system, no clock and no chance", (folder) => {
  for (const path of sources(folder)) {
    const text = fs.readFileSync(path, "utf8");
    const imported = [...text.matchAll(/(?:from|import\()\s*"(node:[^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(
      imported.filter((name = "") => !HARMLESS.has(name)),
      relative(SRC, path),
    ).toEqual([]);
    expect(text, relative(SRC, path)).not.toMatch(
      /\b(?:Date\.now|Math\.random|performance\.now|new Date\(\))/,
    );
  }
});

/** What modules outside of `host/` use of `fs`: looks at names, changes of names, and calls on descriptors. None of it opens a file. */
const OPENS_NO_FILE: ReadonlySet<string> = new Set(
  [
    "BigIntStats Dir Dirent Stats constants",
    "accessSync existsSync lstatSync opendirSync readdirSync readlinkSync realpathSync statfsSync watch",
    "chmodSync linkSync mkdirSync mkdtempSync renameSync rmSync rmdirSync symlinkSync unlinkSync utimesSync",
    "closeSync fchmodSync fchownSync fdatasync fstatSync fsync fsyncSync ftruncateSync futimesSync readSync writeSync",
    "promises.lstat promises.opendir promises.readdir promises.rm",
  ]
    .join(" ")
    .split(" "),
);

/** Every way in which a module reaches what opens a file, or may reach it. */
function opensIn(text: string): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const modules = code.match(/^.*"(?:node:)?fs(?:\/promises)?".*$/gm) ?? [];
  const rest = code.replaceAll(/^import (?:type )?fs from "node:fs";$|"[^"\n]*"/gm, "");
  const uses = rest.matchAll(/(?<![\w.$/:-])fs(?:\s*\.\s*(promises\.\w+|\w+))?(?![\w$:-])/g);
  return [
    ...modules.filter((line) => !/^import (?:type )?fs from "node:fs";$/.test(line)),
    ...[...uses].flatMap(([use, name = ""]) => (OPENS_NO_FILE.has(name) ? [] : use)),
  ];
}

describe("only host/ opens files", () => {
  test.each(Object.keys(ALLOWED).filter((room) => room !== "host"))("src/%s opens none", (room) => {
    for (const path of sources(room))
      expect(opensIn(fs.readFileSync(path, "utf8")), relative(SRC, path)).toEqual([]);
  });

  test.each([
    "fs.readFileSync(path)",
    "fs.statSync(path)",
    "await fs.promises.readFile(path)",
    "const { openSync } = fs;",
    "const all = [fs];",
    'fs["createReadStream"](path)',
    'import { readFileSync } from "node:fs";',
    'const { readFile } = await import("node:fs/promises");',
    "fs\n  .readFileSync(path)",
  ])("%s is found", (text) => {
    expect(opensIn(`import fs from "node:fs";\n/** fs.readFileSync */\n${text}\n`)).toHaveLength(1);
  });
});

test("processes are started by host/spawn.ts, which gives each child its streams", () => {
  for (const path of sources("").filter((path) => !path.endsWith("host/spawn.ts")))
    for (const [names] of fs
      .readFileSync(path, "utf8")
      .matchAll(/import (?:type )?\{[^}]*\} from "node:child_process"/g))
      expect(names, relative(SRC, path)).not.toMatch(/\b(?:spawn|fork)\b/);
});

test("directories are made one at a time: Node's recursive form can run for ever", () => {
  for (const path of programs(["src", "scripts", "bin", "templates"])) {
    const text = fs.readFileSync(join(ROOT, path), "utf8");
    const calls = [...text.matchAll(/\bmkdir(?:Sync)?\([^;]*/g)].map(([call]) => call);
    expect(
      calls.filter((call) => call.includes("recursive")),
      path,
    ).toEqual([]);
  }
});

/** A quoted word of a program: in an array of arguments, as the first one of a call, or in a command for a shell. */
const STARTS_GIT =
  /(?:spawn|spawnSync|exec|execSync|execFile|execFileSync|fork)\(\s*["'`]git\b|\[\s*["'`]git["'`]/;

test("git is started by its one door alone, which starts no program that a run could have named", () => {
  const found = programs(["src", "templates", "bin"]).filter((path) =>
    STARTS_GIT.test(fs.readFileSync(join(ROOT, path), "utf8")),
  );
  expect(found).toEqual(["src/git/run-git.ts"]);
});

test("no code is read from a cache in the shared folder for temporary files", () => {
  for (const path of programs(["src", "test", "scripts", "bin", "bench"])) {
    const text = fs.readFileSync(join(ROOT, path), "utf8");
    const calls = [...text.matchAll(/\bcreateJiti\([^;]*/g)].map(([call]) => call);
    // This test puts other code into such a cache, in a folder of its own.
    const cache = path === "test/agents/module-agent.test.ts" ? "cache" : "false";
    expect(
      calls.filter((call) => !call.includes(`fsCache: ${cache}`)),
      path,
    ).toEqual([]);
    expect(text, path).not.toMatch(/jiti\/register/);
  }
});

test("ARCHITECTURE.md names functions that exist", () => {
  const text = fs.readFileSync(`${ROOT}/ARCHITECTURE.md`, "utf8");
  const code = sources(".")
    .map((path) => fs.readFileSync(path, "utf8"))
    .join("\n");
  const path = text.slice(text.indexOf("## The path"), text.indexOf("## Decisions"));
  const names = [
    ...path.matchAll(/`(?:[A-Z][A-Za-z]+\.)?([a-z]+[A-Z][A-Za-z]+|[A-Z][a-z]+[A-Za-z]*)`/g),
  ]
    .map(([, name = ""]) => name)
    .filter((name) => !name.startsWith("Err"));
  expect(names.length).toBeGreaterThan(20);
  for (const name of names) expect(code, name).toContain(name);
});

/** Documents that link to files, by their paths from the root of the package. */
const DOCUMENTS = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "bench/README.md",
  ...pagesOfDocs(),
];

/** Headings of a page, as links name them. */
function anchorsOf(page: string): string[] {
  return [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}

test.each(DOCUMENTS)("%s links only to files and headings that are there", (document) => {
  const text = fs.readFileSync(`${ROOT}/${document}`, "utf8");
  for (const [, target = "", anchor] of text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
    const path =
      target === "" ? `${ROOT}/${document}` : resolve(dirname(`${ROOT}/${document}`), target);
    expect(fs.existsSync(path), target).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(fs.readFileSync(path, "utf8"))).toContain(anchor);
  }
  for (const [, path = ""] of text.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g))
    expect(fs.existsSync(`${ROOT}/${path}`), path).toBe(true);
});

test("messages, comments and scripts name only pages and headings that are there", () => {
  const named = ["src", "contrib", "scripts", "bench", "examples", "templates"].flatMap((folder) =>
    fs
      .readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(?:ts|mjs|py|sh|yml|md)$/.test(name) && !name.includes("node_modules"))
      .flatMap((name) => [
        ...fs
          .readFileSync(`${ROOT}/${folder}/${name}`, "utf8")
          .matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g),
      ]),
  );
  expect(named.length).toBeGreaterThan(20);
  for (const [link, path = "", anchor] of named) {
    expect(fs.existsSync(`${ROOT}/${path}`), link).toBe(true);
    if (anchor !== undefined)
      expect(anchorsOf(fs.readFileSync(`${ROOT}/${path}`, "utf8")), link).toContain(anchor);
  }
});

test("ARCHITECTURE.md names files and folders that are there", () => {
  const text = fs.readFileSync(`${ROOT}/ARCHITECTURE.md`, "utf8");
  const named = [...text.matchAll(/`([\w.-]+\/[\w./-]*|[\w.-]+\.(?:ts|mjs|md))`/g)];
  expect(named.length).toBeGreaterThan(60);
  const places = [
    "",
    "src",
    "src/mailbox",
    "src/supervisor",
    "src/parts",
    "state",
    "state/mailbox",
  ];
  for (const [, path = ""] of named)
    expect(
      places.some((place) => fs.existsSync(join(ROOT, place, path))),
      path,
    ).toBe(true);
});

describe("the check of the prose", () => {
  const SCRIPT = `${ROOT}/scripts/check-prose.mjs`;

  test("finds each refused word with its line, and lets others pass", async () => {
    const { findProse } = (await import(SCRIPT)) as {
      findProse: (text: string) => { line: number; found: string }[];
    };
    const text =
      "Whoever waits\nwaits in vain.\nIt ran for the 3rd time, the third time, embodying it.";
    expect(findProse(text).map(({ line, found }) => [line, found])).toEqual([
      [1, "Whoever"],
      [2, "in vain"],
      [3, "for the 3rd time"],
    ]);
    expect(findProse("A worker that waits says so, and runs once more.")).toEqual([]);
  });

  test("finds a few words more, each in the sense that misleads", async () => {
    const { findProse } = (await import(SCRIPT)) as {
      findProse: (text: string) => { found: string }[];
    };
    for (const bad of [
      "It runs all the same.",
      "That file is none of ours.",
      "It is tried ever less often.",
      "A file that is let be.",
      "No lock can be had.",
      "It is through with it.",
      "All but for the last.",
      "As far as anybody knows.",
      "A worker that stood still.",
      "Tell it, whatever came of it.",
      "/** Who has lost the lease drops the work. */",
    ])
      expect(findProse(bad), bad).toHaveLength(1);
    for (const good of [
      "Let it be seen.",
      "It goes through the list.",
      "A worker who has lost it.",
    ])
      expect(findProse(good), good).toEqual([]);
  });

  test("looks at the documents and at all of src", async () => {
    const { checkedFiles } = (await import(SCRIPT)) as { checkedFiles: () => string[] };
    for (const file of [
      "README.md",
      "docs/protocol.md",
      "src/cli/main.ts",
      "src/mailbox/claim/claim.ts",
    ])
      expect(checkedFiles()).toContain(file);
  });
});

test("no file of src leads back to itself, by the types that it names either", () => {
  const script = join(ROOT, "scripts", "measure-house.mjs");
  const { circles } = JSON.parse(execFileSync(process.execPath, [script], { encoding: "utf8" }));
  expect(circles).toEqual({ at_run_time: [], with_types: [] });
});
