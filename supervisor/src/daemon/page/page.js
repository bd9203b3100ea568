// Keeps a page as it is on the daemon: when the daemon says that something changed, the same page is asked for again, and
// what is new in it is put in its place. What was open stays open. When the daemon cannot be reached, the page says so.
"use strict";
(() => {
  const APART = 1000; // the least time between two looks, in milliseconds
  const ANYWAY = 10000; // a look is taken after this time even when no word came
  const PATIENCE = 8000; // a look that takes longer is given up
  const EVENTS = ["queue", "run", "run_detail", "method"];

  const live = document.getElementById("live");
  const version = document.body.dataset.version;
  let seen = live.querySelector("time");
  let wanted = null;
  let source = null;
  let address = null;
  let timer = 0;
  let due = 0;
  let looking = false;
  let again = false;
  let last = -Infinity;
  let lost = false;

  function say(what, follows) {
    const text = live.querySelector("[role=status]");
    if (text.textContent !== what) text.textContent = what;
    live.querySelector("time").replaceWith(seen);
    document.body.classList.toggle("live", follows);
    document.body.classList.toggle("lost", lost);
  }

  function plan(wait) {
    const when = Math.max(performance.now() + wait, last + APART);
    if (timer && due <= when) return;
    clearTimeout(timer);
    due = when;
    timer = setTimeout(look, when - performance.now());
  }

  async function look() {
    timer = 0;
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    last = performance.now();
    try {
      const answer = await fetch(location.href, {
        cache: "no-store",
        credentials: "same-origin",
        headers: { Accept: "text/html" },
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (answer.redirected) {
        // The token is asked for again.
        location.assign(answer.url);
        return;
      }
      if (!answer.ok) throw new Error(`the daemon answers ${answer.status}`);
      take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch (error) {
      lost = true;
      const why = /^the daemon answers/.test(error.message) ? ` (${error.message})` : "";
      say(`Connection lost${why}, retrying. This is the state of`, false);
    }
    looking = false;
    if (lost) plan(2 * APART);
    else plan(again ? 0 : ANYWAY);
    again = false;
  }

  function take(fresh) {
    const time = fresh.querySelector("#live time");
    if (!time) throw new Error("not a page of the daemon");
    if (fresh.body.dataset.version !== version) {
      location.reload();
      return;
    }
    for (const part of ["header", "main", "footer"]) morph(document.querySelector(part), fresh.querySelector(part));
    document.title = fresh.title;
    seen = document.importNode(time, true);
    lost = false;
    follow(fresh);
  }

  // Does what a page asks for, and tells how fresh it is.
  function follow(page) {
    wanted = page.querySelector("header").dataset.events ?? null;
    listen();
    say(wanted ? "Live, as of" : "As of", Boolean(wanted));
  }

  // Makes `now` equal to `next` with as few changes as can be.
  function morph(now, next) {
    if (now === live) return;
    for (const { name } of [...now.attributes]) {
      if (name !== "open" && !next.hasAttribute(name)) now.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (name !== "open" && now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    const known = new Map([...now.children].filter((child) => child.id).map((child) => [child.id, child]));
    let at = now.firstChild;
    for (const child of [...next.childNodes]) {
      const kept = child.id ? known.get(child.id) : at && !at.id && at.nodeName === child.nodeName ? at : null;
      known.delete(child.id);
      if (!kept) {
        now.insertBefore(document.importNode(child, true), at);
        continue;
      }
      if (kept === at) at = at.nextSibling;
      else now.insertBefore(kept, at);
      if (kept.nodeType === Node.ELEMENT_NODE) morph(kept, child);
      else if (kept.nodeValue !== child.nodeValue) kept.nodeValue = child.nodeValue;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // Listens to the stream the page names. A page that nobody looks at holds no connection, since a browser has few of them;
  // it is only asked for now and then.
  function listen() {
    const next = document.hidden ? null : wanted;
    if (next === address && source?.readyState !== EventSource.CLOSED) return;
    source?.close();
    address = next;
    source = next ? new EventSource(next) : null;
    if (!source) return;
    source.onerror = () => plan(0);
    for (const name of EVENTS) source.addEventListener(name, () => plan(0));
  }

  addEventListener("online", () => plan(0));
  document.addEventListener("visibilitychange", () => {
    listen();
    if (!document.hidden) plan(0);
  });
  follow(document);
  plan(ANYWAY);
})();
