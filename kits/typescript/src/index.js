// For MCP servers: the sandbox policy and the launcher that came with a tool call.
//
// Read them from `_meta` of *this* call, run the command through the launcher, and keep whatever outlives the call to
// the authority that made it. Nothing here interprets the policy, looks for a launcher, or runs a command without one
// unless the server's operator said so. The types, with their documentation, are in index.d.ts.
export { CallAuthority, CAPABILITY, LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY } from './authority.js';
export { ALLOWED_ENVIRONMENT, MAXIMUM_ARGUMENT_BYTES, SandboxedCommand } from './command.js';
export { AuthorityChanged, AuthorityError, MetaError, Refusal } from './errors.js';
export { AuthorityGuard, Guarded } from './guard.js';
export { GuardedProcess, killOnExit, run } from './process.js';
