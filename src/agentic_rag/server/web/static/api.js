// Talking to the server: JSON, and server-sent events over POST.

import { byId, say } from "./dom.js";

const KEY = "arag-token";

export class Refused extends Error {
  constructor(message, status) { super(message); this.status = status; }
}

const headers = (more = {}) => {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
};

async function askForToken() {
  const dialog = byId("token-dialog");
  if (!dialog.open) dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  sessionStorage.setItem(KEY, byId("token").value);
  byId("token").value = "";
}

async function send(path, options) {
  for (;;) {
    let response;
    try {
      response = await fetch(path, { ...options, headers: headers(options.headers) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(say("error_network"), 0);
    }
    if (response.status === 401) { await askForToken(); continue; }
    if (!response.ok) {
      const body = await response.json().catch(() => ({}));
      throw new Refused(body.error?.message ?? `${response.status} ${response.statusText}`, response.status);
    }
    return response;
  }
}

/** The JSON of a request; `body` is sent as JSON unless it is form data. */
export async function call(method, path, body, signal) {
  const options = { method, signal };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  const response = await send(path, options);
  return response.status === 204 ? null : response.json();
}

/** An address to open a PDF at: its own, or its bytes where a link could not carry the token. */
export async function pdfAddress(path) {
  if (!sessionStorage.getItem(KEY)) return path;
  const response = await send(path, { method: "GET" });
  // The type is set here: bytes of another type would run in this page's name.
  return URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "application/pdf" }));
}

/** The events of a server-sent stream, as objects. */
export async function* events(path, body, signal) {
  const response = await send(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).replace(/\r\n/g, "\n").split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).replace(/^ /, "")).join("\n");
        if (data) yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
