// Starting commands in process groups of their own, and ending the whole group.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { PassThrough } from 'node:stream';

import { Refusal, shown } from './errors.js';
import { AuthorityGuard } from './guard.js';

/** From SIGTERM to SIGKILL, in milliseconds. */
const GRACE_MS = 500;
const MAXIMUM_BYTES = 1 << 20;
/** What a timer takes, 24 days; it takes anything longer for no time at all. */
const LONGEST_MS = 2 ** 31 - 1;
/** The process groups of commands that have not ended. */
const groups = new Set();

export function killOnExit() {
  process.on('exit', killAll);
  for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT']) {
    process.once(name, () => {
      killAll();
      process.kill(process.pid, name);
    });
  }
}

export async function run(command, { timeoutMs, signal, stdin, maximumBytes = MAXIMUM_BYTES } = {}) {
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0)) {
    throw new RangeError(`timeoutMs must be a number of milliseconds, found ${shown(String(timeoutMs))}`);
  }
  signal?.throwIfAborted();
  const child = await start(command, stdin === undefined ? 'ignore' : 'pipe');
  const stdout = keep(child.stdout, maximumBytes);
  const stderr = keep(child.stderr, maximumBytes);
  if (child.stdin) {
    child.stdin.on('error', () => {}); // A command that does not read its input is its own business.
    child.stdin.end(stdin);
  }
  // The end of the command counts, not that of its output: what it left behind may hold the pipes.
  const listening = new AbortController();
  const ended = await firstOf(Math.min(timeoutMs, LONGEST_MS), exited(child), aborted(signal, listening.signal));
  listening.abort(); // A signal may live longer than many commands.
  await end(child);
  await firstOf(GRACE_MS, Promise.all([stdout.closed, stderr.closed]));
  child.stdout.destroy();
  child.stderr.destroy();
  signal?.throwIfAborted();
  return {
    exitCode: child.exitCode ?? 128 + (constants.signals[child.signalCode] ?? constants.signals.SIGKILL),
    stdout: Buffer.concat(stdout.chunks),
    stderr: Buffer.concat(stderr.chunks),
    timedOut: !ended,
    truncated: stdout.truncated || stderr.truncated,
    sandboxed: command.sandboxed,
  };
}

export class GuardedProcess {
  #child;
  #guard;
  #output = new PassThrough();

  constructor(child, authority) {
    this.#child = child;
    this.#guard = new AuthorityGuard(authority);
    child.stdin.on('error', () => {});
    child.once('exit', () => end(child)); // What it started does not outlive it.
    let open = 2;
    for (const stream of [child.stdout, child.stderr]) {
      stream.pipe(this.#output, { end: false });
      stream.once('close', () => --open === 0 && this.#output.end());
    }
  }

  static async start(command) {
    return new GuardedProcess(await start(command, 'pipe'), command.authority);
  }

  get alive() {
    return isAlive(this.#child);
  }

  use(authority) {
    this.#guard.ensureSame(authority);
    if (!this.alive) throw new Refusal('process-ended', 'the process has ended');
    return { stdin: this.#child.stdin, stdout: this.#output };
  }

  async close() {
    await end(this.#child);
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }
}

async function start(command, stdin) {
  const [program, ...args] = command.argv;
  // `detached` makes a session, and with it a process group, of its own.
  const options = { env: command.environment, stdio: [stdin, 'pipe', 'pipe'], detached: true, shell: false };
  const child = spawn(program, args, options);
  // Before anything else can happen; there is no number when it could not be started.
  if (child.pid !== undefined) groups.add(child.pid);
  try {
    await once(child, 'spawn');
  } catch (error) {
    if (!command.sandboxed) throw error;
    const message = `the launcher \`${shown(program)}\` of this call cannot be started: ${error.code ?? error.message}`;
    throw new Refusal('launcher-not-started', message, { cause: error });
  }
  child.on('error', () => {}); // Only of sending it signals, from here on.
  return child;
}

/** Reads to the end, so that nobody blocks on a full pipe, and keeps the beginning. */
function keep(stream, maximum) {
  const kept = { chunks: [], truncated: false, closed: new Promise((done) => stream.once('close', done)) };
  let room = maximum;
  stream.on('error', () => {});
  stream.on('data', (chunk) => {
    kept.truncated ||= chunk.length > room;
    if (room > 0) kept.chunks.push(chunk.subarray(0, room));
    room -= Math.min(room, chunk.length);
  });
  return kept;
}

function isAlive(child) {
  return child.exitCode === null && child.signalCode === null;
}

function exited(child) {
  return isAlive(child) ? new Promise((done) => child.once('exit', done)) : Promise.resolve();
}

function aborted(signal, listening) {
  if (signal?.aborted) return Promise.resolve(); // While the command was being started: no event will come.
  return new Promise((done) => signal?.addEventListener('abort', done, { once: true, signal: listening }));
}

/** Whether one of the promises came before the time was over. */
async function firstOf(milliseconds, ...promises) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, milliseconds, false)));
  try {
    return await Promise.race([late, ...promises.map((promise) => promise.then(() => true))]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ends what is left of a group: TERM, then KILL. */
async function end(child) {
  if (isAlive(child)) {
    kill(child.pid, 'SIGTERM');
    await firstOf(GRACE_MS, exited(child));
  }
  kill(child.pid, 'SIGKILL');
  await firstOf(10 * GRACE_MS, exited(child));
  groups.delete(child.pid);
}

function kill(group, name) {
  try {
    process.kill(-group, name);
  } catch {
    // Gone already, or only processes of another user are left.
  }
}

function killAll() {
  for (const group of groups) kill(group, 'SIGKILL');
}
