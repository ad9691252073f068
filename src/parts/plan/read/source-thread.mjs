/** Runs a thread's file from the sources, for tests: it may not be built, and jiti's own loader caches files in a shared folder. */
import { workerData } from "node:worker_threads";
import { createJiti } from "jiti";

await createJiti(import.meta.url, { fsCache: false }).import(workerData);
