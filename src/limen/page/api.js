// SPDX-License-Identifier: Apache-2.0
// Requests to the server that this page came from, and to no other.

// Why a request was refused: the words of the server where it gave any.
export class Problem extends Error {
  constructor(status, { type = "", title = "", detail = "" } = {}) {
    super(detail || title);
    Object.assign(this, { status, name: type.replace("/problems/", ""), title, detail });
  }

  // The server is out of reach or not ready: to ask again later may help.
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export const ask = async (method, path, body, signal) => {
  const given = { method, headers: {}, credentials: "same-origin", cache: "no-store", signal };
  if (body !== undefined || method !== "GET") {
    given.headers["Content-Type"] = "application/json";
    given.body = JSON.stringify(body ?? {});
  }
  let answer;
  try {
    answer = await fetch(path, given);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The server does not answer", detail: "This page tries again by itself." });
  }
  const text = await answer.text();
  let found = null;
  try {
    found = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem(answer.status || 500, { title: "An answer that cannot be read", detail: "Something between this page and the server changed it." });
  }
  if (!answer.ok) throw new Problem(answer.status, found ?? { title: `The server answered ${answer.status}` });
  return found;
};

export const of = (point, rest = "") => `/v1/points/${encodeURIComponent(point)}${rest}`;
