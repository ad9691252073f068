/**
 * A kind of agent: a task is one request to a service. Its payload is the body, the answer is its output.
 *
 *     plugins: [mailchute-http-agent]
 *     agents:
 *       - { name: render, kind: http, settings: { url: "http://localhost:8080/render" } }
 */
import { definePlugin } from "mailchute/plugin";

/** Answers after which another run cannot help. */
const isOurFault = (status) => status >= 400 && status < 500 && ![408, 425, 429].includes(status);

/** An error that says whether another run may help. */
function failure(message, canRetry) {
  return Object.assign(new Error(message), { canRetry });
}

/** @type {import("mailchute/plugin").PluginKind} */
const http = {
  settings: {
    type: "object",
    properties: {
      url: { type: "string", pattern: "^https?://" },
      method: { enum: ["POST", "PUT", "GET"] },
      token_env: { type: "string" },
    },
    required: ["url"],
    additionalProperties: false,
  },
  make({ settings: { url, method = "POST", token_env: tokenEnv } }) {
    return async (task, { signal, attempt, log }) => {
      const token = tokenEnv === undefined ? undefined : process.env[tokenEnv];
      const response = await fetch(url, {
        method,
        headers: {
          "content-type": "application/json",
          // A service that remembers it does the same work only once.
          "idempotency-key": task.id,
          ...(token && { authorization: `Bearer ${token}` }),
        },
        ...(method !== "GET" && { body: JSON.stringify(task.payload ?? null) }),
        // Aborted at the task's time limit, by a cancel, and when the pool stops.
        signal,
      });
      const text = await response.text();
      log(`run ${attempt}: ${method} ${url}: ${response.status}, ${text.length} characters`);
      if (!response.ok)
        throw failure(`${url} answered ${response.status}`, !isOurFault(response.status));
      const isJson = response.headers.get("content-type")?.includes("json");
      return { status: response.status, answer: isJson ? JSON.parse(text) : text };
    };
  },
};

export default definePlugin({ name: "http-agent", version: "1.0.0", api: 1, kinds: { http } });
