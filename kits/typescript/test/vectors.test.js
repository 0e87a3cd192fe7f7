// The vectors that all kits share.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { AuthorityChanged, AuthorityError, AuthorityGuard, CallAuthority, SandboxedCommand } from 'plenipo-authority';

const all = JSON.parse(readFileSync(new URL('../../vectors.json', import.meta.url), 'utf8'));

function filled(value, replace) {
  if (typeof value === 'string') {
    for (const [mark, { text, times }] of Object.entries(replace)) value = value.replaceAll(mark, () => text.repeat(times));
    return value;
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, replace));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, replace)]));
}

function vectors(part) {
  return all[part].map((vector) => filled(vector, vector.replace ?? {}));
}

function outcome(work) {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    assert.notEqual(error.message, '');
    return { error: error.code };
  }
}

for (const vector of vectors('read')) {
  test(`authority is read or refused: ${vector.name}`, () => {
    const expected = vector.typescript ?? vector.expect;
    const found = outcome(() => {
      const { state, launcher } = CallAuthority.fromMeta(JSON.parse(vector.meta));
      return { state: state ?? null, launcher: launcher ?? null };
    });
    if (found.state && expected.state) {
      assert.deepStrictEqual(JSON.parse(found.state), JSON.parse(expected.state));
      expected.state = found.state;
    }
    assert.deepStrictEqual(found, expected);
  });
}

for (const vector of vectors('command')) {
  test(`commands are built or refused: ${vector.name}`, () => {
    const found = outcome(() => {
      const options = { operator: vector.operator, environment: vector.inherited ?? {}, additions: vector.additions };
      const command = new SandboxedCommand(CallAuthority.fromMeta(JSON.parse(vector.meta)), vector.argv, options);
      return { argv: [...command.argv], environment: { ...command.environment }, sandboxed: command.sandboxed };
    });
    assert.deepStrictEqual(found, vector.expect);
  });
}

for (const { name, kept, call, changed } of vectors('guard')) {
  test(`what outlives a call serves the same authority only: ${name}`, () => {
    const guard = new AuthorityGuard(CallAuthority.fromMeta(JSON.parse(kept)));
    const authority = CallAuthority.fromMeta(JSON.parse(call));
    if (changed.length === 0) return guard.ensureSame(authority);
    assert.throws(
      () => guard.ensureSame(authority),
      (error) =>
        error instanceof AuthorityChanged &&
        error.parts.length === changed.length &&
        changed.every((part) => error.message.includes(part)),
    );
  });
}
