// A stage for tests in a browser: a real server with data, Debian's Chromium, and pages that tell what went wrong.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const BINARY = process.env.CONSOLE_TEST_BINARY ?? 'punctual';
const BROWSER = process.env.CONSOLE_TEST_BROWSER ?? '/usr/bin/chromium-headless-shell';

/** How long anything may take that is not measured: machines that test are busy. */
const PATIENCE = 60_000;

/** Names that try to be something else: markup, paths, and marks that turn the direction of text. */
export const HOSTILE = [
  '<img/src=x/onerror=window.pwned=1>',
  '"><script>window.pwned=1</script>',
  "javascript:window.pwned=1//",
  '{{constructor.constructor("window.pwned=1")()}}',
  '../../v1/dead', '%2e%2e', 'a/b?c#d', 'back\\slash', '__proto__', 'constructor',
  'שלום', '订单-超时未支付', '🦀'.repeat(20), 'x'.repeat(255), "it's", '--all',
].map((name) => name.replaceAll(' ', '_'));

/** A server of the test's own. */
export class Server {
  constructor(...flags) {
    this.flags = flags;
    this.binary = BINARY;
    this.directory = mkdtempSync(join(tmpdir(), 'punctual-console-'));
  }

  async start(port = 0) {
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PUNCTUAL_')));
    const flags = ['serve', '--listen', `127.0.0.1:${port}`, '--data', join(this.directory, 'data'), '--log-level', 'warn', ...this.flags];
    this.process = spawn(this.binary, flags, { env: environment, stdio: ['ignore', 'pipe', 'inherit'], cwd: this.directory });
    for await (const line of createInterface({ input: this.process.stdout })) {
      const found = line.match(/^listening on (http:\/\/.*:(\d+))$/);
      if (found) {
        [, this.url, this.port] = found;
        this.process.stdout.resume();
        return this;
      }
    }
    throw new Error('the server did not start');
  }

  /** From its next start on it is another version: the same program, but for its version and for a letter in the console's files. */
  async become(version) {
    const { version: now } = await this.ask('GET', '/v1/me');
    const program = readFileSync(BINARY);
    const swap = (before, after) => {
      if (before.length !== after.length || !program.includes(before)) throw new Error(`${after} cannot stand in the place of ${before}`);
      for (let at = program.indexOf(before); at >= 0; at = program.indexOf(before, at + 1)) program.write(after, at);
    };
    swap(now, version);
    swap("The console's look: calm", "The console's look: Calm");
    // Builds for developers would read the files from where they are.
    const place = new URL('../../web/', import.meta.url).pathname;
    if (program.includes(place)) swap(place, place.replace(/web\/$/, 'gone'));
    this.binary = join(this.directory, 'another-version');
    writeFileSync(this.binary, program, { mode: 0o755 });
  }

  async kill() {
    this.process.kill('SIGKILL');
    await once(this.process, 'exit');
  }

  async end() {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Runs a command beside the server, and gives what it printed. */
  async command(...words) {
    const child = spawn(BINARY, words, { stdio: ['ignore', 'pipe', 'inherit'], cwd: this.directory });
    let said = '';
    child.stdout.on('data', (piece) => (said += piece));
    await once(child, 'close');
    return said.trim();
  }

  /** Asks it something. */
  async ask(method, path, body, token) {
    const headers = { 'content-type': 'application/json', ...(token ? { authorization: 'Bearer ' + token } : {}) };
    const answer = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text.startsWith('{') ? JSON.parse(text) : text;
  }

  batch(tasks, token) {
    return this.ask('POST', '/v1/tasks/batch', { tasks }, token);
  }

  /** Takes so many deliveries of a queue, and does this with each. */
  async settle(queue, count, act, consumer = 'worker-1') {
    for (let left = count; left > 0; ) {
      const { deliveries } = await this.ask('POST', '/v1/reserve', { queues: [queue], max: left, consumer, wait: '10s' });
      if (!deliveries.length) throw new Error(`${left} deliveries of ${queue} have not come`);
      const actions = deliveries.map(({ lease }) => ({ lease, ...act }));
      if (act) await this.ask('POST', '/v1/leases', { actions });
      left -= deliveries.length;
    }
  }
}

/** A lively server's data: orders, coupons with a herd, reminders, failures, a paused queue. */
export async function fill(server) {
  const minutes = (n) => `${n}m`;
  const tasks = [];
  for (let n = 0; n < 240; n++) tasks.push({ topic: 'order-unpaid', id: `order-${7000 + n}`, key: `user-${n % 40}`, delay: `${60 + ((n * 37) % 3500)}s`, body: { order: 7000 + n, total: 9007199254740993n.toString(), items: ['tea', 'cup'] }, headers: { source: 'shop' } });
  for (let n = 0; n < 900; n++) tasks.push({ topic: 'coupon-end', id: `coupon-${n}`, delay: minutes(31), body: { coupon: n } });
  for (let n = 0; n < 120; n++) tasks.push({ topic: 'reminder', id: `reminder-${n}`, key: `user-${n % 40}`, delay: minutes(5 + ((n * 13) % 2880)), text: '明天上午十点开会' });
  for (let n = 0; n < 30; n++) tasks.push({ topic: 'sms', id: `sms-${n}`, key: `user-${n}`, text: `code ${n}`, retry: { attempts: n < 12 ? 1 : 5 } });
  for (let n = 0; n < 60; n++) tasks.push({ topic: 'invoice', id: `invoice-${n}`, body: { invoice: n } });
  await server.batch(tasks);
  await server.ask('PATCH', '/v1/topics/order-unpaid', { owner: 'shop@example.org' });
  await server.ask('PATCH', '/v1/topics/coupon-end', { owner: 'marketing@example.org', rate: { per_second: 500 } });
  await server.settle('sms', 8, { do: 'release', note: 'timeout: connect 10.0.3.7:443' });
  await server.settle('sms', 4, { do: 'reject', note: 'no such number' });
  await server.settle('sms', 3, undefined, 'worker-3');
  await server.settle('invoice', 52, { do: 'acknowledge' });
  await server.ask('POST', '/v1/queues/invoice/pause', { for: '1h' });
}

/** Data whose every name and text is hostile, of every state. */
export async function infest(server) {
  const names = HOSTILE;
  const { results } = await server.batch(names.map((name, n) => ({ topic: name, id: names[(n + 1) % names.length], key: name, delay: '1h', text: names[0], headers: { 'x-note': '<b>bold</b>' } })));
  const refused = results.filter((result) => result.problem);
  if (refused.length) throw new Error(`names must be names: ${JSON.stringify(refused)}`);
  await server.batch(names.map((name) => ({ topic: 'target', id: name, key: name, body: { [name]: names[1] } })));
  await server.ask('PATCH', '/v1/topics/target', { owner: names[0] });
  await server.settle('target', 6, { do: 'reject', note: names[1] + '\u202Egnp.exe' }, names[0]);
  await server.settle('target', 3, undefined, names[1]);
  await server.settle('target', 3, { do: 'acknowledge' });
}

/** A browser, with fonts: without them nothing would be seen, and nothing be wrong. */
export async function browse() {
  return chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/**
 * A page that notes what goes wrong: errors, what the policy refused, and requests to others.
 */
export async function open(browser, server, { theme = 'light', language = 'en', width = 1280, height = 860, token } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, locale: language === 'zh' ? 'zh-CN' : 'en-GB', timezoneId: 'Asia/Shanghai', reducedMotion: 'reduce' });
  await context.addInitScript(([secret, spoken]) => {
    if (secret) sessionStorage.setItem('punctual.token', secret);
    localStorage.setItem('punctual.language', spoken);
    window.refused = [];
    window.shifted = 0;
    window.movers = [];
    document.addEventListener('securitypolicyviolation', (event) => window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries().filter((entry) => !entry.hadRecentInput)) {
        window.shifted += entry.value;
        window.movers.push(...entry.sources.map(({ node }) => (node?.parentElement ?? document.body).outerHTML.slice(0, 200)));
      }
    }).observe({ type: 'layout-shift', buffered: true });
  }, [token, language]);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.wrong = [];
  page.foreign = [];
  page.on('pageerror', (error) => page.wrong.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && !/status of (40|50)|ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED/.test(message.text()) && page.wrong.push(message.text()));
  page.on('request', (request) => !request.url().startsWith(server.url) && !request.url().startsWith('blob:') && page.foreign.push(request.url()));
  page.show = async (path) => {
    await page.goto(server.url + '/console/' + path);
    await settled(page);
  };
  return page;
}

/** Waits until the page shows what it has asked for. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('.page')?.children.length && !document.querySelector('[aria-busy="true"]'), undefined, { timeout: PATIENCE });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** All pages, with data of `fill`. */
export const PAGES = {
  overview: '', future: 'future', 'future-table': 'future?view=table', consumers: 'consumers', sweeps: 'sweeps', audit: 'audit', topics: 'topics', topic: 'topics/order-unpaid', 'topic-settings': 'topics/order-unpaid?tab=settings',
  queues: 'queues', queue: 'queues/sms', 'queue-leased': 'queues/sms?tab=leased', 'queue-consumers': 'queues/sms?tab=consumers', 'queue-settings': 'queues/sms?tab=settings', tasks: 'tasks?topic=order-unpaid', task: 'tasks/sms/sms-0', 'task-waiting': 'tasks/order-unpaid/order-7000', key: 'keys/user-1',
  dead: 'dead', nodes: 'nodes', server: 'server', new: 'new?topic=order-unpaid', help: 'help', find: 'find?q=sms', nowhere: 'no/such/page/at/all',
};
