// The command line that runs a command under the authority of its call. Nothing is started here.
import { checked, isUnicode } from './authority.js';
import { Refusal, shown } from './errors.js';
import { kind } from './value.js';

export const MAXIMUM_ARGUMENT_BYTES = 131_071;

export const ALLOWED_ENVIRONMENT = Object.freeze([
  'HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'LANG', 'LC_ALL', 'TERM', 'TMPDIR', 'TZ',
]);

const FIXED_NAMES = ['HOME', 'TMPDIR'];
const FIXED_PREFIXES = ['XDG_', 'PLENIPO_'];
const OPERATOR_POLICIES = ['require-launcher', 'allow-unsandboxed'];

export class SandboxedCommand {
  constructor(authority, argv, { operator = 'require-launcher', environment = process.env, additions = {} } = {}) {
    if (!OPERATOR_POLICIES.includes(operator)) throw new TypeError(`unknown operator policy: ${operator}`);
    const options = optionsOf(checked(authority), operator);
    checkArgv(argv);
    this.authority = authority;
    this.sandboxed = options.length > 0;
    this.argv = Object.freeze([...options, ...argv]);
    this.environment = Object.freeze(environmentOf(environment, additions));
    Object.freeze(this);
  }
}

/** The launcher up to and including `--`; empty: run without. */
function optionsOf({ state, launcher }, operator) {
  if (launcher === undefined) {
    if (operator === 'allow-unsandboxed') return [];
    if (state === undefined) {
      throw new Refusal('no-authority', 'the call came without a sandbox state and without a launcher');
    }
    throw new Refusal('no-launcher', 'the call came with a sandbox state but without a launcher');
  }
  if (state === undefined) throw new Refusal('no-state', 'the call came with a launcher but without a sandbox state');
  const bytes = Buffer.byteLength(state);
  if (bytes > MAXIMUM_ARGUMENT_BYTES) {
    const message = `sandbox state is ${bytes} bytes long, one argument of a program takes ${MAXIMUM_ARGUMENT_BYTES}`;
    throw new Refusal('state-too-long', message);
  }
  return [launcher, 'sandbox', '--sandbox-state-json', state, '--'];
}

function checkArgv(argv) {
  if (!Array.isArray(argv)) {
    throw new Refusal('command-not-a-list', `the command must be a list of words, found ${kind(argv)}`);
  }
  if (argv.length === 0 || argv[0] === '') throw new Refusal('empty-command', 'the command is empty');
  for (const [index, argument] of argv.entries()) {
    if (typeof argument !== 'string') throw new TypeError(`argument ${index} of the command must be a string`);
    if (argument.includes('\0')) throw new Refusal('argument-nul', `argument ${index} of the command holds a NUL`);
    if (!isUnicode(argument)) throw new Refusal('argument-text', `argument ${index} of the command is no Unicode text`);
    const bytes = Buffer.byteLength(argument);
    if (bytes > MAXIMUM_ARGUMENT_BYTES) {
      const what = `argument ${index} of the command is ${bytes} bytes long`;
      throw new Refusal('argument-too-long', `${what}, a program takes ${MAXIMUM_ARGUMENT_BYTES}`);
    }
  }
}

function environmentOf(inherited, additions) {
  // Without a prototype, so that no name means something else.
  const environment = Object.create(null);
  for (const name of ALLOWED_ENVIRONMENT) {
    const value = Object.hasOwn(inherited, name) ? inherited[name] : undefined;
    if (value !== undefined && !value.includes('\0')) environment[name] = value;
  }
  for (const [name, value] of Object.entries(additions)) {
    if (FIXED_NAMES.includes(name) || FIXED_PREFIXES.some((prefix) => name.startsWith(prefix))) {
      const message = `environment variable \`${shown(name)}\` may not be set for a sandboxed command`;
      throw new Refusal('environment-name', message);
    }
    if (name === '' || /[=\0]/.test(name) || value.includes('\0')) {
      const message = `environment variable \`${shown(name)}\` has a name or value that cannot be passed on`;
      throw new Refusal('environment-entry', message);
    }
    environment[name] = value;
  }
  return environment;
}
