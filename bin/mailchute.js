#!/usr/bin/env node
process.exitCode = await (await import("../dist/cli/main.js")).main(process.argv.slice(2));
