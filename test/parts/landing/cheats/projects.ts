/** Small projects with a fault, each with the check that finds it. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import type { TestRepository } from "../../../support/git-repository.ts";

export interface Project {
  verify: string[];
  files: Readonly<Record<string, string>>;
}

const HELPER = `const assert = require("node:assert");
exports.same = (found, expected) => assert.strictEqual(found, expected);
`;
const testOf = (
  name: string,
  call: string,
  expected: string,
): string => `const { test } = require("node:test");
const { same } = require("./helper");
const ${name} = require("../src/${name}.js");
test("${name}", () => {
  same(${call}, ${expected});
});
`;
const unittestOf = (name: string, call: string, expected: string): string => `import unittest
from calc.${name} import ${name}


class ${name}Test(unittest.TestCase):
    def test_${name}(self):
        self.assertEqual(${call}, ${expected})
`;

export const PROJECTS: Readonly<Record<string, Project>> = {
  js: {
    verify: ["npm", "test", "--silent"],
    files: {
      "package.json":
        '{"name": "p", "version": "1.0.0", "scripts": {"test": "node --test test/"}}\n',
      "src/add.js": "module.exports = (a, b) => a - b;\n",
      "src/greet.js": 'module.exports = () => "hello";\n',
      "src/unused.js": "module.exports = 1;\n",
      "src/attest.js": "module.exports = 1;\n",
      "src/features/one.js": "module.exports = 1;\n",
      "src/snapshots/one.js": "module.exports = 1;\n",
      "test/helper.js": HELPER,
      "test/add.test.js": testOf("add", "add(1, 2)", "3"),
      "test/greet.test.js": testOf("greet", "greet()", '"hello"'),
    },
  },
  py: {
    verify: ["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."],
    files: {
      "calc/__init__.py": "",
      "calc/add.py": "def add(a, b):\n    return a - b\n",
      "calc/greet.py": 'def greet():\n    return "hello"\n',
      "calc/unused.py": "",
      "tests/__init__.py": "",
      "tests/test_add.py": unittestOf("add", "add(1, 2)", "3"),
      "tests/test_greet.py": unittestOf("greet", "greet()", '"hello"'),
      ".gitignore": "__pycache__/\nbuild/\n",
    },
  },
  sh: {
    verify: ["make", "test"],
    files: {
      Makefile: "test:\n\tsh test/run.sh\n",
      "lib/add.sh": "add() { echo $(($1 - $2)); }\n",
      "lib/greet.sh": "greet() { echo hello; }\n",
      "lib/unused.sh": "one() { echo 1; }\n",
      "test/expected.txt": "3\n",
      "test/run.sh": `. lib/add.sh
. lib/greet.sh
[ "$(add 1 2)" = "$(cat test/expected.txt)" ] || exit 1
[ "$(greet)" = hello ] || exit 1
`,
    },
  },
};

/** Commits the project. */
export function putProject(repo: TestRepository, { files }: Project): void {
  for (const name of Object.keys(files))
    fs.mkdirSync(dirname(join(repo.dir, name)), { recursive: true });
  repo.commit(files, "project");
}

export interface Case {
  project: Project;
  name: string;
  script: string;
}

/** The cases of a list: a line each, `project | name | script`. */
export function readCases(path: string): Case[] {
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, kind = "", name = "", script = ""] = /^(\w+) \| (.*?) \| (.*)$/.exec(line) ?? [];
      const project = PROJECTS[kind];
      if (project === undefined) throw new Error(`no such project: ${line}`);
      return { project, name: `${kind}: ${name}`, script };
    });
}
