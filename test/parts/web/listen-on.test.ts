/** Where `web` listens: what leaves this machine needs TLS, and only the stated address is answered. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type ListenOptions, listenOn } from "../../../src/parts/web/listen-on.ts";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { exchange, openWeb, pagePath } from "./open-web.ts";

const on = (options: Partial<ListenOptions> = {}) =>
  listenOn({ "behind-proxy": false, ...options });
const https1 = "https://pool.example";

it("without more it is this machine only", () => {
  expect(on().origins(7433)).toEqual(["http://127.0.0.1:7433", "http://localhost:7433"]);
  expect(on({ host: "localhost" }).host).toBe("127.0.0.1");
  expect(on({ host: "::1" }).origins(1)).toEqual(["http://[::1]:1", "http://localhost:1"]);
});

it.each<Partial<ListenOptions>>([
  { host: "0.0.0.0" },
  { host: "::" },
  { host: "192.168.0.1" },
  { host: "" },
  { host: "toString" },
  { host: "0.0.0.0", origin: https1 },
  { origin: https1 },
  { host: "0.0.0.0", "behind-proxy": true },
  { host: "0.0.0.0", "behind-proxy": true, origin: "http://pool.example" },
  { "behind-proxy": true, origin: "https://pool.example/path" },
  { "behind-proxy": true, origin: "https://user@pool.example" },
  { "behind-proxy": true, origin: "pool.example" },
  { "behind-proxy": true, origin: "https://pool.example?a" },
  { "tls-cert": "/nope/cert.pem", origin: https1 },
  { "tls-cert": "/nope/cert.pem", "tls-key": "/nope/key.pem", origin: https1 },
])("%j is refused with what to do", (options) => {
  expect(() => on(options)).toThrow(
    expect.objectContaining({ code: "ErrUsage", hint: expect.any(String) as string }) as Error,
  );
});

it("behind a proxy only the stated address is answered, and the cookie is for TLS only", async () => {
  const proxied = on({ "behind-proxy": true, origin: "https://POOL.example:443/" });
  expect(proxied.origins(1)).toEqual([https1]);
  const web = await openWeb(newPool().state, undefined, undefined, false, {}, proxied);
  expect(web.newLink()).toMatch(/^https:\/\/pool\.example\/#code=/);
  const session = exchange(web.port, web.sessions.newCode());
  const headers = { ...session.headers, host: "pool.example" };
  expect((await web.ask({ ...session, headers })).status).toBe(403);
  const good = await web.ask({ ...session, headers: { ...headers, origin: https1 } });
  expect(good.status).toBe(200);
  expect(good.headers["set-cookie"]?.[0]).toMatch(/; SameSite=Strict; Path=\/; Secure$/);
  for (const host of [`127.0.0.1:${web.port}`, "pool.example:80", "other.example"])
    expect((await web.ask({ path: pagePath("/"), headers: { host } })).status).toBe(421);
});

/** A certificate for `localhost`, made by openssl. */
function certificate(): { cert: string; key: string } {
  const dir = tempDir();
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  args.push("-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-days", "2");
  const { status, stderr } = spawnSync("openssl", [
    ...args,
    "-addext",
    "subjectAltName=DNS:localhost",
  ]);
  if (status !== 0) throw new Error(String(stderr));
  return { cert, key };
}

it("with a certificate it speaks TLS itself", async () => {
  const pool = newPool();
  const { cert, key } = certificate();
  const origin = "https://localhost:7443";
  const words = ["web", "--port", "0", "--json", "--host", "0.0.0.0", "--origin", origin];
  const web = pool.spawn([...words, "--tls-cert", cert, "--tls-key", key]);
  await waitFor(() => web.stdout().endsWith("\n"), { what: "its link" });
  const { link, port } = JSON.parse(web.stdout()) as { link: string; port: number };
  expect(link).toMatch(/^https:\/\/localhost:7443\/#code=/);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { host: "localhost:7443" };
    const options = { port, headers, ca: fs.readFileSync(cert), servername: "localhost" };
    https.get(options, ({ statusCode }) => resolve(statusCode)).on("error", reject);
  });
  expect(status).toBe(200);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  web.child.kill("SIGTERM");
  expect((await web.ended).exitCode).toBe(0);
  fs.writeFileSync(key, "no key");
  const wrong = await pool.run([...words, "--tls-cert", cert, "--tls-key", key]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("the certificate and its key cannot be used");
});

it("--open gives the browser a file of ours alone, and no secret as a word of its command", async () => {
  const dir = tempDir();
  const seen = join(dir, "seen");
  const script = `#!/bin/sh\nprintf '%s\\n' "$@" > ${seen}.words\nf="\${1#file://}"\nstat -c %a "$f" > ${seen}.mode\ncp "$f" ${seen}.tmp && mv ${seen}.tmp ${seen}.html\n`;
  fs.writeFileSync(join(dir, "xdg-open"), script, { mode: 0o755 });
  const pool = newPool({ env: { PATH: `${dir}:${process.env["PATH"]}` } });
  const web = pool.spawn(["web", "--port", "0", "--open"]);
  await waitFor(() => fs.existsSync(`${seen}.html`) && web.stdout().endsWith("\n"), {
    what: "the browser",
  });
  const link = web.stdout().trim();
  const [word = "", ...others] = fs.readFileSync(`${seen}.words`, "utf8").trim().split("\n");
  expect(others).toEqual([]);
  expect(word).toMatch(/^file:\/\/\/.*\/open\.html$/);
  expect(fs.readFileSync(`${seen}.mode`, "utf8")).toBe("600\n");
  expect(fs.readFileSync(`${seen}.html`, "utf8")).toContain(`url=${link}"`);
  web.child.kill("SIGTERM");
  await web.ended;
  expect(fs.existsSync(word.slice("file://".length))).toBe(false);
});

it("says when no browser can be opened", async () => {
  const dir = tempDir();
  fs.writeFileSync(join(dir, "xdg-open"), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
  const pool = newPool({ env: { PATH: `${dir}:${process.env["PATH"]}` } });
  const web = pool.spawn(["web", "--port", "0", "--open"]);
  await waitFor(() => web.stderr().includes("opens no browser"), { what: "its word" });
  expect(web.stderr()).toContain("(it ended with exit code 3): open the link yourself");
  web.child.kill("SIGTERM");
  await web.ended;
});
