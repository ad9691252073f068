/** The places of a state tree that docs/state-tree.md names, and what may stand there instead of a file of ours. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(new URL("../../docs/state-tree.md", import.meta.url));
const TODAY = new Date().toISOString().slice(0, 10);
const NAMES: Readonly<Record<string, string>> = { day: TODAY, n: "1", role: "worker" };

/** Paths below the tree, from the list at the beginning of the page; the same with the folders that they lie in. */
export function placesOfTree(): string[] {
  const [, list = ""] = /```\nstate\/\n(.*?)```/s.exec(fs.readFileSync(PAGE, "utf8")) ?? [];
  const lines = list.split("\n").filter((line) => /^ {2}\S/.test(line));
  const patterns = lines.flatMap((line) => patternsIn(line.trim()));
  const paths = patterns.flatMap(expand).map((path) =>
    path
      .replaceAll(/<(\w+)>/g, (_, name: string) => NAMES[name] ?? "a")
      .replaceAll("@….~", "@abcdefgh.1~")
      .replaceAll("@…", "@abcdefgh.1")
      .replaceAll("…", "x"),
  );
  const folders = paths.map(dirname).filter((folder) => folder !== ".");
  return [...new Set([...paths.map((path) => path.replace(/\/$/, "")), ...folders])].sort();
}

/** The paths with which a line begins: separated by two spaces, or by a comma when they lie in one folder. */
function patternsIn(line: string): string[] {
  const [first = "", ...pieces] = line.split(/ {2,}/);
  const [path = "", beside = ""] = first.split(/,? /);
  const isBeside = first.includes(", ");
  return [
    path,
    ...(isBeside ? [join(dirname(path), beside)] : []),
    ...pieces.filter((piece) => /^[\w.<>/]+\.\w+$/.test(piece)),
  ];
}

function expand(path: string): string[] {
  const [, before = "", inside, after = ""] = /^(.*?)\{(.*?)\}(.*)$/.exec(path) ?? [];
  return inside === undefined ? [path] : inside.split(",").map((one) => `${before}${one}${after}`);
}

/** Puts it there, in place of what is there. @returns a function that ends what still works on it */
export type Put = (path: string) => () => void;

const NOTHING = (): void => {};

export const KINDS: Readonly<Record<string, Put>> = {
  "a pipe": (path) => {
    execFileSync("mkfifo", [path]);
    return NOTHING;
  },
  "a socket": (path) => {
    const code = `require("net").createServer().listen(${JSON.stringify(basename(path))}, () => process.exit(0))`;
    execFileSync(process.execPath, ["-e", code], { cwd: dirname(path) });
    return NOTHING;
  },
  "a directory": (path) => {
    fs.mkdirSync(path);
    return NOTHING;
  },
  "a link to /dev/zero": (path) => {
    fs.symlinkSync("/dev/zero", path);
    return NOTHING;
  },
  "10 GB without a byte of data": (path) => {
    fs.writeFileSync(path, "{");
    fs.truncateSync(path, 10 * 2 ** 30);
    return NOTHING;
  },
  "a file that grows": (path) => {
    const fd = fs.openSync(path, "a");
    const timer = setInterval(() => fs.writeSync(fd, Buffer.alloc(16 * 1024, " ")), 1);
    return () => {
      clearInterval(timer);
      fs.closeSync(fd);
    };
  },
  "a file that others may not read": (path) => {
    fs.writeFileSync(path, "{}", { mode: 0 });
    return NOTHING;
  },
  "a name of bytes that are not UTF-8": (path) => {
    const name = Buffer.concat([Buffer.from(`${path}-`), Buffer.from([0xff, 0xfe])]);
    fs.writeFileSync(name as unknown as string, "{}");
    return NOTHING;
  },
};

export function put(kind: string, path: string): () => void {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  fs.rmSync(path, { recursive: true, force: true });
  const make = KINDS[kind];
  if (make === undefined) throw new Error(`no kind ${kind}`);
  return make(path);
}
