#!/usr/bin/env node
// Files that are synced together share the commits of the file system: 64 at once are twenty times as fast as 4. The size
// of the pool is read at its first use, so this comes before all else. Who syncs one file needs no such threads, and may be where
// nobody may have so many: then the process would be aborted.
const [, , verb, ...words] = process.argv;
if (verb === "worker" || (verb === "enqueue" && words.some((word) => word.startsWith("--file"))))
  process.env.UV_THREADPOOL_SIZE ??= "64";

const { main } = require("../dist/cli/main.cjs");

void (async () => {
  process.exitCode = await main(process.argv.slice(2));
})();
