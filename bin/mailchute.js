#!/usr/bin/env node
// libuv makes all of its threads at their first use, and aborts the process when one cannot be made. Most commands sync a file or
// two, and do with one. These make what they need themselves (src/host/threads.ts), or hand the environment on to programs.
const [, , verb, ...words] = process.argv;
const isFile = words.some((word) => word.startsWith("--file"));
const makesItsOwn =
  ["run", "worker", "demo", "chat"].includes(verb) || (verb === "enqueue" && isFile);
if (!makesItsOwn) process.env.UV_THREADPOOL_SIZE ??= "1";

// Node 22 keeps what it has compiled. In the package's own folder: what others could write there, they could write into the code, too.
require("node:module").enableCompileCache?.(`${__dirname}/../.compiled`);

const { main } = require("../dist/cli/main.cjs");

void (async () => {
  process.exitCode = await main(process.argv.slice(2));
})();
