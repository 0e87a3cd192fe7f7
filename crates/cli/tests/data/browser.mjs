// Walks the pages of a sign-in in a real browser: `browser.mjs CHROMIUM PROFILE URL ACCOUNT [--stop-before-callback]`.
// Fills in and sends every form until a page has none, and prints that page as JSON. The browser is driven over two
// pipes (Chrome DevTools Protocol, --remote-debugging-pipe): no port, no package.
import { spawn } from 'node:child_process';

const [chromium, profile, start, account, stop] = process.argv.slice(2);
const browser = spawn(
  chromium,
  [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--remote-debugging-pipe',
    `--user-data-dir=${profile}`, 'about:blank',
  ],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
);
const [, , , out, input] = browser.stdio;
const waiting = new Map();
const handlers = [];
let number = 0;
let rest = '';
input.setEncoding('utf8').on('data', (chunk) => {
  const messages = (rest + chunk).split('\0');
  rest = messages.pop();
  for (const message of messages.map((text) => JSON.parse(text))) {
    const done = waiting.get(message.id);
    if (done) waiting.delete(message.id), message.error ? done.reject(new Error(message.error.message)) : done.resolve(message.result);
    else for (const handler of handlers) handler(message);
  }
});
const send = (method, params = {}, sessionId) =>
  new Promise((resolve, reject) => {
    waiting.set(++number, { resolve, reject });
    out.write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
  });
browser.on('error', (error) => { console.error(error); process.exit(1); });

const { targetInfos } = await send('Target.getTargets');
const page = targetInfos.find((target) => target.type === 'page');
const { sessionId } = await send('Target.attachToTarget', { targetId: page.targetId, flatten: true });
const run = (method, params) => send(method, params, sessionId);
let stopped;
const addressOf = new Promise((resolve) => { stopped = resolve; });
handlers.push(({ method, params }) => {
  if (method !== 'Fetch.requestPaused') return;
  // Where the browser is on another machine it cannot reach the address that it is sent to.
  if (stop && new URL(params.request.url).pathname === '/callback') {
    run('Fetch.failRequest', { requestId: params.requestId, errorReason: 'ConnectionRefused' });
    stopped(params.request.url);
  } else run('Fetch.continueRequest', { requestId: params.requestId });
});
await run('Page.enable');
await run('Fetch.enable');

const loaded = () =>
  new Promise((resolve) => {
    const handler = ({ method }) => {
      if (method !== 'Page.loadEventFired') return;
      handlers.splice(handlers.indexOf(handler), 1);
      resolve();
    };
    handlers.push(handler);
  });
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await run('Runtime.evaluate', { expression, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
};

const walk = async () => {
  let next = loaded();
  await run('Page.navigate', { url: start });
  for (let forms = 0; forms < 10; forms++) {
    await next;
    const shown = await evaluate(`({ url: location.href, title: document.title, text: document.body.innerText,
      form: !!document.querySelector('[type=submit], form button') })`);
    if (!shown.form) return shown;
    next = loaded();
    await evaluate(`(() => {
      for (const field of document.querySelectorAll('form input[type=text], form input:not([type])')) field.value ||= ${JSON.stringify(account)};
      for (const field of document.querySelectorAll('form input[type=password]')) field.value = 'anything';
      document.querySelector('[type=submit], form button').click();
    })()`);
  }
  throw new Error('the forms have no end');
};

const shown = await Promise.race([walk(), addressOf.then((url) => ({ url }))]);
console.log(JSON.stringify(shown));
await Promise.race([send('Browser.close').catch(() => {}), new Promise((done) => browser.on('exit', done))]);
browser.kill('SIGKILL');
process.exit(0);
