// What outlives a call keeps the authority of the call that made it.
import { checked } from './authority.js';
import { AuthorityChanged } from './errors.js';

export class AuthorityGuard {
  #authority;

  constructor(authority) {
    this.#authority = checked(authority);
  }

  ensureSame(authority) {
    checked(authority);
    const parts = [];
    if (this.#authority.state !== authority.state) parts.push('sandbox state');
    if (this.#authority.launcher !== authority.launcher) parts.push('launcher');
    if (parts.length > 0) throw new AuthorityChanged(parts);
  }
}

export class Guarded {
  #value;
  #guard;

  constructor(value, authority) {
    this.#value = value;
    this.#guard = new AuthorityGuard(authority);
  }

  take(authority) {
    this.#guard.ensureSame(authority);
    return this.#value;
  }
}
