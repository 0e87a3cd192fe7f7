// Why something is refused: `code` for programs, `hint` for people.

const OPERATOR =
  "call through a host that sends `codex/sandbox-launcher`, or let the server's operator allow unsandboxed commands " +
  'in its own configuration';
const HINTS = new Map([
  ['no-authority', OPERATOR],
  ['no-launcher', OPERATOR],
  ['no-state', 'the host must send `codex/sandbox-state` with the launcher'],
  ['state-too-long', 'shorten the permission profile'],
  ['argument-too-long', 'pass long input in a file or on stdin'],
  ['environment-name', 'HOME, TMPDIR, XDG_* and PLENIPO_* decide what a policy means; remove it'],
  ['authority-changed', 'start anew under the authority of this call'],
  ['not-an-authority', 'read it from `_meta` of this call: `CallAuthority.fromMeta(context.mcpReq._meta)`'],
  ['command-not-a-list', "write the words apart, or run a shell by name: `['/bin/sh', '-c', line]`"],
  ['launcher-not-started', 'nothing was run; call through a host whose launcher is there, and do not try without it'],
]);

export class AuthorityError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    this.hint = HINTS.get(code);
  }
}

export class MetaError extends AuthorityError {}

export class Refusal extends AuthorityError {}

export class AuthorityChanged extends AuthorityError {
  constructor(parts) {
    super('authority-changed', `authority changed: ${parts.join(' and ')}`);
    this.parts = parts;
  }
}

/** A peer's text, short and without control characters. */
export function shown(text) {
  const plain = text.slice(0, 80).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return plain + (text.length > 80 ? '…' : '');
}
