#!/usr/bin/env node
/** mock-api.mjs [--port N] [--script FILE]: the mock of the model APIs by hand. Prints its address, then each request as a line. */
import fs from "node:fs";
import { createJiti } from "jiti";
import { readFlags } from "./flags.mjs";

const { values } = readFlags(import.meta.url, {
  options: { port: { type: "string", default: "0" }, script: { type: "string" } },
});
const jiti = createJiti(import.meta.url, { fsCache: false });
const mockApi = (name) => jiti.import(`../src/agents/mock-api/${name}.ts`);
const { startMockApi } = await mockApi("server");
const { readScenario } = await mockApi("script");

const text = values.script === undefined ? "[]" : fs.readFileSync(values.script, "utf8");
const api = await startMockApi(readScenario(JSON.parse(text)), {
  port: Number(values.port),
  onRequest: (request) => console.log(JSON.stringify(request)),
});
console.log(api.url);
