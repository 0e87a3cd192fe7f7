// What a server in TypeScript writes. Checked by `tsc --strict`, never run: the declarations have to allow this and,
// where `@ts-expect-error` stands, nothing else.
import type { Readable, Writable } from 'node:stream';

import {
  ALLOWED_ENVIRONMENT, AuthorityChanged, AuthorityError, AuthorityGuard, CallAuthority, CAPABILITY, Guarded,
  GuardedProcess, killOnExit, LAUNCHER_KEY, MAXIMUM_ARGUMENT_BYTES, MetaError, Refusal, run, SandboxedCommand,
  STATE_ALIAS_KEY, STATE_KEY,
} from 'plenipo-authority';
import type { CommandOptions, Completed, OperatorPolicy, RunOptions } from 'plenipo-authority';

const capabilities: { experimental: Record<string, object> } = { experimental: CAPABILITY };
const names: string[] = [STATE_KEY, STATE_ALIAS_KEY, LAUNCHER_KEY, ...ALLOWED_ENVIRONMENT];
const longest: number = MAXIMUM_ARGUMENT_BYTES;
const operator: OperatorPolicy = 'allow-unsandboxed';
const options: CommandOptions = { operator, environment: process.env, additions: { A: '1' } };

export async function tool(meta: Record<string, unknown> | undefined, signal: AbortSignal): Promise<Completed> {
  const authority = CallAuthority.fromMeta(meta);
  const state: string | undefined = authority.state;
  const command = new SandboxedCommand(authority, ['make', 'test'] as const, options);
  const limits: RunOptions = { timeoutMs: 60_000, signal, stdin: state ?? new Uint8Array(), maximumBytes: longest };
  const done = await run(command, limits);
  const text: string = done.stdout.toString('utf8') + command.argv.join(' ') + (command.environment['PATH'] ?? '');
  return { ...done, truncated: done.truncated || text === '' };
}

export async function stays(authority: CallAuthority): Promise<[Writable, Readable]> {
  const shell = await GuardedProcess.start(new SandboxedCommand(CallAuthority.absent(), ['sh']));
  const cached = new Guarded({ answer: 42 }, authority);
  const answer: number = cached.take(authority).answer;
  new AuthorityGuard(authority).ensureSame(authority);
  const { stdin, stdout } = shell.use(authority);
  if (!shell.alive) await shell.close();
  stdin.write(`${answer}\n`);
  return [stdin, stdout];
}

export function hint(error: unknown): string | undefined {
  if (error instanceof AuthorityChanged) return error.parts.join();
  if (error instanceof Refusal || error instanceof MetaError) return error.code;
  return error instanceof AuthorityError ? error.hint : undefined;
}

// @ts-expect-error: an authority comes with a call, nobody makes one
new CallAuthority('{}', '/launcher');
// @ts-expect-error: a command is a list of words
new SandboxedCommand(CallAuthority.absent(), 'ls -l');
// @ts-expect-error: a time limit is required
void run(new SandboxedCommand(CallAuthority.absent(), ['ls']), {});
// @ts-expect-error: no other policy of an operator
options.operator = 'always';

killOnExit();
void [capabilities, names];
