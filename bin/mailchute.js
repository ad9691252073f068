#!/usr/bin/env node
// Files that are synced together share the commits of the file system: 64 at once are twenty times as fast as 4. The size
// of the pool is read at its first use, so this comes before all else.
if (process.argv[2] === "enqueue" || process.argv[2] === "worker")
  process.env.UV_THREADPOOL_SIZE ??= "64";

const { main } = require("../dist/cli/main.cjs");

void (async () => {
  process.exitCode = await main(process.argv.slice(2));
})();
