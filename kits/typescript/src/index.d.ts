import type { Readable, Writable } from 'node:stream';

export declare const STATE_KEY = 'codex/sandbox-state';
export declare const STATE_ALIAS_KEY = 'codex/sandbox-state-meta';
export declare const LAUNCHER_KEY = 'codex/sandbox-launcher';

/** For `capabilities.experimental` of the server: asks hosts for the policy of each call. */
export declare const CAPABILITY: { readonly 'codex/sandbox-state': {} };

/** The longest single argument that Linux passes to a program, in bytes. */
export declare const MAXIMUM_ARGUMENT_BYTES: 131071;

/** The variables a command inherits; everything else, and so the server's own secrets, stays out. */
export declare const ALLOWED_ENVIRONMENT: readonly string[];

/** Nothing may run for this call. The message is a lower-case fragment. */
export declare class AuthorityError extends Error {
  /** For programs: `no-launcher`, `differ`, … */
  readonly code: string;
  /** What a person can do about it. */
  readonly hint: string | undefined;
}

/** What came in `_meta` is unusable: malformed, or not representable in JavaScript. */
export declare class MetaError extends AuthorityError {}

/** The command is not run. */
export declare class Refusal extends AuthorityError {}

/** Something that outlived its call was made under another authority. */
export declare class AuthorityChanged extends AuthorityError {
  readonly parts: readonly string[];
}

/** The policy and the launcher that came with one call, well formed or absent. Absence is not permission. */
export declare class CallAuthority {
  private constructor();
  /**
   * The JSON text of the policy, written once from the value that the SDK parsed: the same JSON value, not the same
   * bytes. It is opaque.
   */
  readonly state: string | undefined;
  /** An absolute path. */
  readonly launcher: string | undefined;
  /** The authority of a call without `_meta`: none. */
  static absent(): CallAuthority;
  /**
   * Reads `params._meta` of this call as the SDK parsed it (`context.mcpReq._meta`, in version 1 `extra._meta`).
   * Never hand it tool arguments: they come from a model.
   *
   * Throws MetaError when it is not an object, a state is none, both names carry different ones, the launcher is
   * anything but an object with an absolute path as its only member, or a number may have been rounded. A key that
   * occurred twice cannot be seen any more: `JSON.parse` keeps the last.
   */
  static fromMeta(meta: object | null | undefined): CallAuthority;
}

/**
 * What to do when a call brings no launcher, decided by the server's operator, never by a caller. The opt-out covers
 * absence only: what is malformed, differs or is refused stays refused.
 */
export type OperatorPolicy = 'require-launcher' | 'allow-unsandboxed';

export interface CommandOptions {
  /** Default: `require-launcher`. */
  operator?: OperatorPolicy;
  /** What the command inherits from; only ALLOWED_ENVIRONMENT is taken. Default: the server's own. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** What the server's operator configured. */
  additions?: Readonly<Record<string, string>>;
}

/** A command under the authority of its call. A plain value: nothing is started. */
export declare class SandboxedCommand {
  /** `argv` has the program first. Throws Refusal. */
  constructor(authority: CallAuthority, argv: readonly string[], options?: CommandOptions);
  readonly authority: CallAuthority;
  /** The whole command line, program first. */
  readonly argv: readonly string[];
  /** The whole environment of the program. */
  readonly environment: Readonly<Record<string, string>>;
  /** False when the operator's opt-out was used: the result of the tool must say so. */
  readonly sandboxed: boolean;
}

/** The authority under which a long-lived process, a pool or a cached result was made. Never write it to disk. */
export declare class AuthorityGuard {
  constructor(authority: CallAuthority);
  /** Throws AuthorityChanged unless state text and launcher are exactly those retained. */
  ensureSame(authority: CallAuthority): void;
}

/** A value that only a call under the same authority gets back: a cached result, a connection, a process. */
export declare class Guarded<T> {
  constructor(value: T, authority: CallAuthority);
  /** Throws AuthorityChanged for a call under another authority. */
  take(authority: CallAuthority): T;
}

export interface Completed {
  /** The command's own; 128+n when signal n ended it. With a launcher of Plenipo, 125 is its refusal. */
  exitCode: number;
  stdout: Buffer;
  stderr: Buffer;
  timedOut: boolean;
  /** More was written than is kept. */
  truncated: boolean;
  /** False when nothing was enforced: the result of the tool must say so. */
  sandboxed: boolean;
}

export interface RunOptions {
  /** Zero or more; `run` rejects with a RangeError for what is no number. More than 2,147,483,647 counts as that: 24 days. */
  timeoutMs: number;
  /** Of the call: when it is aborted the process group is ended and `run` rejects with its reason. */
  signal?: AbortSignal;
  stdin?: string | Uint8Array;
  /** Kept of each stream; default 1 MiB. */
  maximumBytes?: number;
}

/**
 * Runs a command to its end; ends the whole process group when it takes longer or is aborted, with it the launcher, and
 * so everything in its sandbox. Without a launcher what left the group (`setsid`) stays. Rejects with a Refusal when the
 * launcher cannot be started, and nothing has run then; with the system's error when there is none and the program
 * cannot be started.
 */
export declare function run(command: SandboxedCommand, options: RunOptions): Promise<Completed>;

/** A process that serves several calls, all under the authority of the call that started it. */
export declare class GuardedProcess {
  private constructor();
  /** Starts it, standard error joined to standard output. */
  static start(command: SandboxedCommand): Promise<GuardedProcess>;
  readonly alive: boolean;
  /** The streams, for a call under the same authority. Throws AuthorityChanged for any other, Refusal at its end. */
  use(authority: CallAuthority): { stdin: Writable; stdout: Readable };
  /** Ends the whole process group. */
  close(): Promise<void>;
}

/**
 * Ends every command when the server ends: by itself, or by SIGTERM, SIGINT or SIGHUP. After SIGKILL no program can
 * clean up; a host that starts servers below a keeper of its own, as Plenipo does, ends their commands too.
 */
export declare function killOnExit(): void;
