/** Kills pools at their system calls, from the sources against the built command line: `node test/crash/syscalls.mjs [ARGS]`. */
import { createJiti } from "jiti";

const { main } = await createJiti(import.meta.url).import("./syscalls/run.ts");
process.exitCode = await main(process.argv.slice(2));
