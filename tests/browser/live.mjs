// Looks at the live page as people do: on a desk, on a phone, in the dark, and without a script. The Rust test that starts
// it acts for it: a line `ask WHAT` on stdout is a wish, and the answer is a line on stdin.
//
// Usage: node live.mjs NODE_MODULES CHROMIUM ADDRESS TOKEN PICTURES
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, executablePath, base, token, pictures] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(modules, "playwright-core/index.mjs")));
const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");
const PATIENCE = 20000;

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  console.log(`ask ${what}`);
  const { value, done } = await answers.next();
  assert(!done, "the test that started this is gone");
  return value;
}

const VIEWS = {
  desk: { viewport: { width: 1280, height: 900 } },
  phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
  dark: { viewport: { width: 360, height: 740 }, colorScheme: "dark", deviceScaleFactor: 2 },
  plain: { viewport: { width: 360, height: 740 }, javaScriptEnabled: false },
};

const profile = mkdtempSync(join(tmpdir(), "proctor-browser-"));
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const more = ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", `--crash-dumps-dir=${profile}`];
const browser = await chromium.launch({ executablePath, args: [...flags, ...more] });

/** One reader: a window of its own, and everything that window complained about. */
class Reader {
  static async open(name) {
    const reader = new Reader();
    reader.name = name;
    reader.complaints = [];
    const context = await browser.newContext(VIEWS[name]);
    context.setDefaultTimeout(PATIENCE);
    const page = (reader.page = await context.newPage());
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) reader.complaints.push(message.text());
    });
    page.on("pageerror", (error) => reader.complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      reader.complaints.push(`a dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    return reader;
  }

  /** Waits until an element has a text. */
  sees(selector, text) {
    return this.page.locator(selector).filter({ hasText: text }).first().waitFor({ state: "visible" });
  }

  /** Nothing is wider than the window, and the window cannot be scrolled sideways. */
  async fits() {
    const wide = await this.page.evaluate(() => {
      const width = document.documentElement.clientWidth;
      const outside = [...document.querySelectorAll("body *")].filter((one) => {
        const { right, left } = one.getBoundingClientRect();
        const scrolls = one.closest(".wide, .skip, svg");
        return !scrolls && right - left > 0 && (right > width + 0.5 || left < -0.5);
      });
      const whole = document.documentElement.scrollWidth;
      return [whole > width ? `the page is ${whole} wide` : [], outside.map((one) => one.outerHTML.slice(0, 200))].flat();
    });
    assert.deepEqual(wide, [], `${this.name}: cut off`);
  }

  /** Nothing that the rules of WCAG 2.2, as far as a program can judge them, find fault with. */
  async accessible() {
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(() => window.axe.run(document));
    const faults = found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`);
    assert(found.passes.length > 20);
    assert.deepEqual(faults, [], `${this.name}: ${this.page.url()}`);
  }

  picture(what) {
    return this.page.screenshot({ path: join(pictures, `${this.name}-${what}.png`), fullPage: true });
  }

  async login() {
    const { page } = this;
    await page.goto(`${base}/`);
    await page.getByLabel("Token of the daemon").fill(token);
    await page.getByRole("button").click();
    await this.sees("h1", "Proctor on");
  }
}

const all = (work) => Promise.all(readers.map(work));
const readers = await Promise.all(Object.keys(VIEWS).map(Reader.open));
const [desk, phone, dark, plain] = readers;
const scripted = [desk, phone, dark];

try {
  await desk.page.goto(`${base}/`);
  await desk.picture("login");
  await all((reader) => reader.login());
  const [first, second] = (await ask("runs")).split(" ");

  // The overview: one run goes on, the other waits and says why.
  await all(async (reader) => {
    await reader.sees("section[aria-labelledby=running] .chip", "running");
    await reader.sees("section[aria-labelledby=queue] .why", /[Ww]ants \d+ core|[Ww]aits/);
    await reader.fits();
    await reader.picture("overview");
  });
  await desk.accessible();
  assert.equal(await dark.page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(15, 19, 24)");

  // All wait at the page of the second run until its method is seen to move. Nobody loads it again.
  const chip = (method) => `#method-${method} .chip`;
  await all(async (reader) => {
    await reader.page.goto(`${base}/runs/${second}`);
    await reader.sees(chip(1), "queued");
    if (reader !== plain) {
      await reader.sees("#live", "Live, as of");
      await reader.page.evaluate(() => (window.untouched = true));
    }
    await reader.picture("queued");
  });

  // Cancelling needs the token, and works without a script. It lets the second run start.
  const { page } = plain;
  await page.goto(`${base}/runs/${first}`);
  await page.getByRole("link", { name: /^Cancel this run/ }).click();
  await page.getByLabel("Token of the daemon").fill("not the token at all");
  await page.getByRole("button").click();
  await plain.sees("[role=alert]", "Nothing was cancelled");
  // A browser complains of every answer that is a refusal, this one too.
  assert.match(plain.complaints.splice(0).join(), /^Failed to load resource: [^,]* 403 [^,]*$/);
  await plain.fits();
  await plain.picture("cancel");
  await page.getByLabel("Token of the daemon").fill(token);
  await page.getByRole("button").click();
  await plain.sees("h1 .chip", /cancelled/);
  await page.goto(`${base}/runs/${second}`);

  await all(async (reader) => {
    await reader.sees(chip(1), "running");
    await reader.sees("#method-1 .stderr", "[31mred");
    await reader.fits();
    if (reader === desk) await reader.page.locator("#attempt-table summary").click();
    await reader.picture("running");
    await reader.sees(chip(1), "timeout");
    await reader.sees("#method-1 .why", "Used up its budget of 8.000 s and was killed; 0 of 3 datasets finished.");
  });
  assert.equal(await desk.page.locator("#attempt-table[open]").count(), 1, "what was open was closed");
  for (const { page, name } of scripted) {
    assert.equal(await page.evaluate(() => window.untouched), true, `${name} was loaded again`);
  }

  // The run ends; the bundle is there, and its pages lead to each other.
  await all(async (reader) => {
    await reader.sees("h1 .chip", "methods failed");
    await reader.sees(chip(0), "completed");
    await reader.sees("a", "Rankings and results");
    await reader.fits();
    assert.equal(await reader.page.locator("main script").count(), 0);
    await reader.sees("#method-1 th", "<script>alert(1)</script>");
    await reader.picture("ended");
  });
  await desk.accessible();
  await dark.accessible();
  const file = await desk.page.locator('#files a[href*="scores"]').first().getAttribute("href");
  const scores = await desk.page.request.get(base + file);
  assert.equal(scores.status(), 200, file);
  assert.equal(scores.headers()["content-type"], "text/plain; charset=utf-8");
  assert.equal(scores.headers()["x-content-type-options"], "nosniff");
  assert.equal(await desk.page.locator("svg.timeline .bar").count(), 3);
  await all(async (reader) => {
    await reader.page.getByRole("link", { name: "Rankings and results" }).click();
    await reader.sees("h2", "Methods");
    await reader.page.getByRole("link", { name: "Details" }).click();
    await reader.sees("h2", "Datasets");
    await reader.page.goto(`${base}/`);
    await reader.sees("section[aria-labelledby=ended] .chip", "methods failed");
  });

  // The keyboard is enough.
  await desk.page.goto(`${base}/`);
  await desk.page.keyboard.press("Tab");
  assert.equal(await desk.page.evaluate(() => document.activeElement.textContent), "To the content");
  await desk.page.keyboard.press("Tab");
  assert.equal(await desk.page.evaluate(() => document.activeElement.textContent), "Overview");

  for (const { name, complaints } of readers) assert.deepEqual(complaints, [], `${name}: the console`);

  // A daemon that is gone is said to be gone, and is found again.
  await Promise.all(scripted.map((reader) => reader.sees("#live", "Live, as of")));
  await ask("kill");
  await Promise.all(scripted.map((reader) => reader.sees("#live", "Connection lost, retrying")));
  await phone.fits();
  await phone.picture("lost");
  await ask("start");
  await Promise.all(scripted.map((reader) => reader.sees("#live", "Live, as of")));
  await Promise.all(scripted.map((reader) => reader.sees("section[aria-labelledby=ended] .chip", "methods failed")));
  const unexpected = readers.flatMap(({ complaints }) => complaints).filter((text) => !text.includes("net::ERR_"));
  assert.deepEqual(unexpected, [], "the console after the restart");
  console.log("done");
} catch (error) {
  await Promise.allSettled(readers.map((reader) => reader.picture("failure")));
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
  process.stdin.destroy();
}
