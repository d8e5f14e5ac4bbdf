/** What a change reaches. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { pureOf, reachedBy } from './reach.ts';
import { test } from './suite.ts';

const root = new URL('../..', import.meta.url).pathname;
const tests = globSync('test/**/*.test.ts', { cwd: root });

test('a rule reaches its own test, and the commands that lead to it', () => {
  const reached = reachedBy(tests, ['runtime/core/mirrors/resolve.ts']);
  assert.ok(reached.includes('test/core/mirrors.test.ts'));
  assert.ok(reached.includes('test/diagnose/mirrors-clusters.test.ts'));
  assert.ok(!reached.includes('test/node/atomic-file.test.ts'));
});

test('a file of cases reaches the tests of its folder, a page those that name it', () => {
  assert.ok(
    reachedBy(tests, ['test/conformance/cases/mco/e2e.json']).includes(
      'test/conformance/conformance.test.ts',
    ),
  );
  assert.ok(reachedBy(tests, ['docs/install.md']).some((file) => file.startsWith('test/docs/')));
});

test('suites that are loaded by name wait for the control plane that they need', () => {
  const waiting = reachedBy(tests, ['test/control-plane/build.ts']);
  assert.ok(waiting.includes('test/conformance/conformance.test.ts'));
});

test('the lock file reaches everything', () => {
  assert.equal(reachedBy(tests, ['package-lock.json']).length, tests.length);
});

test('pure tests start nothing', () => {
  const pure = pureOf(tests);
  assert.ok(pure.includes('test/core/mirrors.test.ts') && pure.length > 25, `${pure.length}`);
  assert.ok(!pure.includes('test/charts/apply.test.ts'));
  assert.ok(!pure.includes('test/diagnose/mirrors-clusters.test.ts'));
});
