// Which view is shown: #/ask, #/documents, #/documents/12, #/trace, #/trace/ID.

import * as ask from "./ask.js";
import * as documents from "./documents.js";
import { alarm, byId } from "./dom.js";
import * as trace from "./trace.js";

const views = { ask, documents, trace };

async function route() {
  const [, name = "", given = ""] = location.hash.split("/");
  const view = name in views ? name : "ask";
  for (const one of Object.keys(views)) {
    byId(`view-${one}`).hidden = one !== view;
    const link = document.querySelector(`nav [data-view="${one}"]`);
    if (one === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  alarm("");
  try {
    await views[view].show(given ? decodeURIComponent(given) : null);
  } catch (error) {
    alarm(error.message);
  }
}

for (const view of Object.values(views)) view.prepare();
window.addEventListener("hashchange", route);
route();
