// Reading the authority of a call from its `_meta`.
import { MetaError, Refusal, shown } from './errors.js';
import { canonical, Inexact, isObject, kind, textOf } from './value.js';

export const STATE_KEY = 'codex/sandbox-state';
export const STATE_ALIAS_KEY = 'codex/sandbox-state-meta';
export const LAUNCHER_KEY = 'codex/sandbox-launcher';

export const CAPABILITY = Object.freeze({ [STATE_KEY]: Object.freeze({}) });

/** The longest state that is read, in bytes (1 MiB). */
const MAXIMUM_STATE_BYTES = 1 << 20;
const EXECUTABLE = 'codexExecutable';

export class CallAuthority {
  constructor(state, launcher) {
    this.state = state;
    this.launcher = launcher;
    Object.freeze(this);
  }

  static absent() {
    return new CallAuthority(undefined, undefined);
  }

  static fromMeta(meta) {
    if (meta === undefined || meta === null) return CallAuthority.absent();
    if (typeof meta !== 'object' || Array.isArray(meta)) {
      throw new MetaError('meta-not-an-object', `\`_meta\` must be an object, found ${kind(meta)}`);
    }
    const names = [STATE_KEY, STATE_ALIAS_KEY].filter((name) => Object.hasOwn(meta, name));
    const texts = names.map((name) => stateText(name, meta[name]));
    if (names.length === 2 && canonical(meta[STATE_KEY]) !== canonical(meta[STATE_ALIAS_KEY])) {
      throw new MetaError('differ', `\`${STATE_KEY}\` and \`${STATE_ALIAS_KEY}\` differ`);
    }
    const launcher = Object.hasOwn(meta, LAUNCHER_KEY) ? launcherPath(meta[LAUNCHER_KEY]) : undefined;
    return new CallAuthority(texts[0], launcher);
  }
}

/** What a call came with. A missing one would otherwise be taken for anything. */
export function checked(authority) {
  if (authority instanceof CallAuthority) return authority;
  throw new Refusal('not-an-authority', `expected the authority of this call, found ${kind(authority)}`);
}

function stateText(name, value) {
  if (!isObject(value)) {
    throw new MetaError('state-not-an-object', `\`${name}\` must be an object, found ${kind(value)}`);
  }
  let text;
  try {
    text = textOf(value);
  } catch (error) {
    if (error instanceof Inexact) throw new MetaError(error.code, `\`${name}\` ${error.message}`);
    throw error;
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > MAXIMUM_STATE_BYTES) {
    throw new MetaError('state-too-large', `\`${name}\` is ${bytes} bytes long, at most ${MAXIMUM_STATE_BYTES} are read`);
  }
  return text;
}

function launcherPath(value) {
  if (!isObject(value)) {
    throw new MetaError('launcher-not-an-object', `\`${LAUNCHER_KEY}\` must be an object, found ${kind(value)}`);
  }
  const unknown = Object.keys(value).find((key) => key !== EXECUTABLE);
  if (unknown !== undefined) {
    throw new MetaError('launcher-member', `\`${LAUNCHER_KEY}\` has the unknown member \`${shown(unknown)}\``);
  }
  if (!Object.hasOwn(value, EXECUTABLE)) {
    throw new MetaError('launcher-missing', `\`${LAUNCHER_KEY}\` has no \`${EXECUTABLE}\``);
  }
  const path = value[EXECUTABLE];
  if (typeof path !== 'string' || !isUnicode(path)) {
    const message = `\`${EXECUTABLE}\` must be a string of Unicode text, found ${kind(path)}`;
    throw new MetaError('launcher-not-text', message);
  }
  if (!path.startsWith('/') || path.includes('\0') || path.endsWith(' (deleted)')) {
    const message = `\`${EXECUTABLE}\` must be the absolute path of a file, found \`${shown(path)}\``;
    throw new MetaError('launcher-path', message);
  }
  return path;
}

/** Whether a string has no lone surrogate, which would be passed on as another character. */
export function isUnicode(text) {
  return !/\p{Surrogate}/u.test(text);
}
