/** Requests to our server, and what one file of this page tells the others. */

const KEY = "mailchute-key";
export const DISCONNECTED = "disconnected: mailchute web does not answer; what is shown may be old";
/** An event of the document: show another page. */
export const GO = "mailchute-go";

export const hasKey = () => localStorage.getItem(KEY) !== null;
export const keepKey = (key) => localStorage.setItem(KEY, key);

/** The key is not sent by browsers themselves, as cookies are: other pages cannot send it. */
export function headers() {
  return { "X-Mailchute-Key": localStorage.getItem(KEY) ?? "" };
}

/** Throws when the server does not answer. @param body sent by POST; left out: GET */
export async function request(path, body) {
  const answer = await fetch(
    path,
    body === undefined
      ? { headers: headers() }
      : {
          method: "POST",
          headers: { ...headers(), "Content-Type": "application/json" },
          body: JSON.stringify(body),
        },
  );
  return { answer, value: await answer.json() };
}

export function goTo(path) {
  document.dispatchEvent(new CustomEvent(GO, { detail: path }));
}
