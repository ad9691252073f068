/** The thread of `RoadmapLoader`: receives texts, parses them and sends the documents back in portions. */
import { parentPort } from "node:worker_threads";
import { messageOf } from "../../../core/errors.ts";
import { parseRoadmap } from "./document.ts";
import type { LoadReply, LoadRequest } from "./loader.ts";

const NODES_AT_ONCE = 250;

parentPort?.on("message", ({ id, text }: LoadRequest) => {
  const reply = (one: LoadReply): void => parentPort?.postMessage(one);
  try {
    const { nodes, text: _text, ...rest } = parseRoadmap(text);
    for (let at = 0; at < nodes.length; at += NODES_AT_ONCE)
      reply({ id, nodes: nodes.slice(at, at + NODES_AT_ONCE) });
    reply({ id, rest });
  } catch (error) {
    reply({ id, failure: messageOf(error) });
  }
});
