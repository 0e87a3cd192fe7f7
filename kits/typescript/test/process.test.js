// Real processes: a launcher that is a script stands where the host's would.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import {
  AuthorityChanged, CallAuthority, Guarded, GuardedProcess, MetaError, Refusal, run, SandboxedCommand,
} from 'plenipo-authority';

const STATE = { sandboxCwd: 'file:///', n: 1 };

/** A directory with a launcher that says how it was called, then runs the command. */
function place(t) {
  const directory = mkdtempSync(join(tmpdir(), 'kit-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const launcher = join(directory, 'launcher');
  writeFileSync(launcher, '#!/bin/sh\nprintf \'%s\\n\' "$1" "$2" "$3" "$4" >&2\nshift 4\nexec "$@"\n');
  chmodSync(launcher, 0o700);
  const authority = (state = STATE) =>
    CallAuthority.fromMeta({ 'codex/sandbox-state': state, 'codex/sandbox-launcher': { codexExecutable: launcher } });
  return { directory, launcher, authority };
}

async function until(what, holds) {
  for (const deadline = Date.now() + 20_000; !holds(); ) {
    assert.ok(Date.now() < deadline, what);
    await delay(10);
  }
}

/** Waits until a process has ended; a zombie that nobody has reaped yet has. */
function gone(pid) {
  return until(`${pid} ends`, () => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)[0] === 'Z';
    } catch {
      return true;
    }
  });
}

test('a command runs through the launcher with a cleared environment', async (t) => {
  const { authority } = place(t);
  process.env.KIT_SECRET = 's3cret';
  t.after(() => delete process.env.KIT_SECRET);
  const command = new SandboxedCommand(authority(), ['sh', '-c', 'cat; env; exit 3'], { additions: { ADDED: '1' } });
  const done = await run(command, { timeoutMs: 20_000, stdin: 'input\n' });
  assert.deepEqual([done.exitCode, done.timedOut, done.sandboxed], [3, false, true]);
  assert.equal(done.stderr.toString(), `sandbox\n--sandbox-state-json\n${JSON.stringify(STATE)}\n--\n`);
  assert.match(done.stdout.toString(), /^input\n[^]*\nADDED=1\n/);
  assert.doesNotMatch(done.stdout.toString(), /s3cret/);
});

test('a time limit that a timer cannot hold is no time limit of a millisecond', async (t) => {
  const { authority } = place(t);
  const command = new SandboxedCommand(authority(), ['sh', '-c', 'sleep 0.1; echo done']);
  for (const timeoutMs of [2 ** 31, 1e15, Infinity]) {
    const done = await run(command, { timeoutMs });
    assert.deepEqual([done.stdout.toString(), done.timedOut], ['done\n', false], String(timeoutMs));
  }
});

test('without a time limit that is a number nothing is started', async (t) => {
  const { authority, directory } = place(t);
  const command = new SandboxedCommand(authority(), ['touch', join(directory, 'ran')]);
  for (const options of [undefined, {}, { timeoutMs: NaN }, { timeoutMs: -1 }, { timeoutMs: '5000' }]) {
    await assert.rejects(run(command, options), RangeError);
  }
  assert.equal(existsSync(join(directory, 'ran')), false);
});

test('a signal that many calls share is not listened to by those that ended', async (t) => {
  const { authority } = place(t);
  const command = new SandboxedCommand(authority(), ['true']);
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener;
  signal.addEventListener = (type, done, options) => {
    listeners += 1;
    options.signal.addEventListener('abort', () => (listeners -= 1));
    add.call(signal, type, done, options);
  };
  for (let n = 0; n < 3; n += 1) await run(command, { timeoutMs: 20_000, signal });
  assert.equal(listeners, 0);
});

test('a launcher that is gone is an error and nothing runs', async (t) => {
  const { authority, directory, launcher } = place(t);
  const command = new SandboxedCommand(authority(), ['touch', join(directory, 'ran')]);
  unlinkSync(launcher);
  for (const start of [() => run(command, { timeoutMs: 20_000 }), () => GuardedProcess.start(command)]) {
    await assert.rejects(start, (error) => {
      assert.ok(error instanceof Refusal);
      assert.equal(error.code, 'launcher-not-started');
      assert.equal(error.message, `the launcher \`${launcher}\` of this call cannot be started: ENOENT`);
      assert.match(error.hint, /nothing was run/);
      return true;
    });
  }
  assert.ok(!existsSync(join(directory, 'ran')));
  // Without one it is the program that is missing, as anywhere.
  const alone = new SandboxedCommand(CallAuthority.absent(), ['/nonexistent/x'], { operator: 'allow-unsandboxed' });
  await assert.rejects(run(alone, { timeoutMs: 20_000 }), { code: 'ENOENT' });
});

test('a command is a list and an authority is one', async (t) => {
  const { authority } = place(t);
  assert.throws(() => new SandboxedCommand(authority(), 'ls -l'), { code: 'command-not-a-list' });
  const shell = await GuardedProcess.start(new SandboxedCommand(authority(), ['sh']));
  t.after(() => shell.close());
  const cached = new Guarded('result', authority());
  for (const nothing of [null, undefined, {}]) {
    for (const use of [
      () => shell.use(nothing),
      () => cached.take(nothing),
      () => new SandboxedCommand(nothing, ['ls']),
      () => new Guarded(1, nothing),
    ]) {
      assert.throws(use, { code: 'not-an-authority', message: /^expected the authority of this call, found / });
    }
  }
  shell.use(authority());
});

test('an unsandboxed command says so', async () => {
  const command = new SandboxedCommand(CallAuthority.absent(), ['true'], { operator: 'allow-unsandboxed' });
  assert.equal((await run(command, { timeoutMs: 20_000 })).sandboxed, false);
});

test('a timeout ends the whole group', async (t) => {
  const { authority } = place(t);
  const script = "trap '' TERM; sleep 600 & echo $!; echo $$; wait; wait";
  const done = await run(new SandboxedCommand(authority(), ['sh', '-c', script]), { timeoutMs: 500 });
  assert.deepEqual([done.timedOut, done.exitCode], [true, 137]);
  for (const pid of done.stdout.toString().trim().split('\n')) await gone(pid);
});

test('aborting ends the whole group', async (t) => {
  const { authority, directory } = place(t);
  const pids = join(directory, 'pids');
  const script = `sleep 600 & echo $! $$ > ${pids}.new; mv ${pids}.new ${pids}; wait`;
  const abort = new AbortController();
  t.after(() => abort.abort()); // whatever fails before, nothing holds the tests
  const command = new SandboxedCommand(authority(), ['sh', '-c', script]);
  const running = run(command, { timeoutMs: 600_000, signal: abort.signal });
  await until('it runs', () => existsSync(pids));
  abort.abort();
  await assert.rejects(running, { name: 'AbortError' });
  for (const pid of readFileSync(pids, 'utf8').trim().split(' ')) await gone(pid);
});

test('an abort while the command is being started ends it too', async (t) => {
  const { authority, directory } = place(t);
  const abort = new AbortController();
  const command = new SandboxedCommand(authority(), ['sh', '-c', `echo $$ > ${directory}/pid; exec sleep 600`]);
  const running = run(command, { timeoutMs: 600_000, signal: abort.signal });
  abort.abort();
  const timely = delay(20_000, 'late', { ref: false });
  assert.equal(await Promise.race([running.catch((error) => error.name), timely]), 'AbortError');
  if (existsSync(join(directory, 'pid'))) await gone(readFileSync(join(directory, 'pid'), 'utf8').trim());
});

test('what a command leaves behind is ended and does not hold the answer', async (t) => {
  const { authority } = place(t);
  const command = new SandboxedCommand(authority(), ['sh', '-c', 'sleep 600 & echo $!']);
  const done = await run(command, { timeoutMs: 60_000 });
  assert.deepEqual([done.exitCode, done.timedOut], [0, false]);
  await gone(done.stdout.toString().trim());
});

test('output is bounded and the command is not blocked', async (t) => {
  const { authority } = place(t);
  const command = new SandboxedCommand(authority(), ['sh', '-c', 'head -c 5000000 /dev/zero; echo end >&2']);
  const done = await run(command, { timeoutMs: 60_000, maximumBytes: 1000 });
  assert.deepEqual([done.exitCode, done.stdout.length, done.truncated], [0, 1000, true]);
  assert.match(done.stderr.toString(), /end\n$/);
});

test('a long-lived process refuses another authority', async (t) => {
  const { authority } = place(t);
  const shell = await GuardedProcess.start(new SandboxedCommand(authority(), ['sh']));
  t.after(() => shell.close());
  const lines = createInterface({ input: shell.use(authority()).stdout })[Symbol.asyncIterator]();
  shell.use(authority()).stdin.write('x=41\n');
  shell.use(authority()).stdin.write('echo answer $((x+1)) $$\n');
  let line = '';
  while (!line.startsWith('answer')) line = (await lines.next()).value;
  const [, answer, pid] = line.split(' ');
  assert.equal(answer, '42');
  assert.throws(() => shell.use(authority({ ...STATE, n: 2 })), AuthorityChanged);
  assert.throws(() => shell.use(CallAuthority.absent()), AuthorityChanged);
  await shell.close();
  await gone(pid);
  assert.equal(shell.alive, false);
});

test('a cached result serves the same authority only', (t) => {
  const { authority } = place(t);
  const cached = new Guarded('result', authority());
  assert.equal(cached.take(authority()), 'result');
  assert.throws(() => cached.take(authority({ ...STATE, n: 2 })), AuthorityChanged);
});

test('commands end with the server', async (t) => {
  const { directory } = place(t);
  const mark = join(directory, 'pid');
  const server = `
    import { CallAuthority, killOnExit, run, SandboxedCommand } from 'plenipo-authority';
    killOnExit();
    const argv = ['sh', '-c', "trap '' TERM; echo $$ > $0; sleep 600", ${JSON.stringify(mark)}];
    const command = new SandboxedCommand(CallAuthority.absent(), argv, { operator: 'allow-unsandboxed' });
    await run(command, { timeoutMs: 600_000 });`;
  const cwd = new URL('..', import.meta.url);
  const child = spawn(process.execPath, ['--input-type=module', '-e', server], { cwd, stdio: 'inherit' });
  t.after(() => child.kill('SIGKILL'));
  await until('it runs', () => existsSync(mark) && readFileSync(mark, 'utf8').endsWith('\n'));
  child.kill('SIGTERM');
  const [, signal] = await once(child, 'exit');
  assert.equal(signal, 'SIGTERM');
  await gone(readFileSync(mark, 'utf8').trim());
});

test('a value that is no JSON is refused', () => {
  const values = [{ a: undefined }, { a: 1n }, { a: () => {} }, { a: new Date(0) }, { a: NaN }, { toJSON: () => ({}) }];
  for (const value of values) assert.throws(() => CallAuthority.fromMeta({ 'codex/sandbox-state': value }), MetaError);
});
