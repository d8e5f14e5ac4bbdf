import assert from 'node:assert/strict';
import { HostMemory, type ProbeResult } from '../../runtime/registry/probe.ts';
import { test } from '../support/suite.ts';

const answer = (verdict: ProbeResult['verdict'], more: Partial<ProbeResult> = {}): ProbeResult => ({
  reference: 'r.example.com/a:1',
  verdict,
  message: 'as it was said',
  ...more,
});

function memory() {
  let now = 0;
  return { memory: new HostMemory(() => now), pass: (ms: number) => void (now += ms) };
}

test('a host that asks to wait is spared for that long, for that credential', () => {
  const { memory: known, pass } = memory();
  known.set('r', 'a', answer('RateLimited', { retryAfterSeconds: 20 }));
  assert.equal(known.get('r', 'a')?.verdict, 'RateLimited');
  assert.equal(known.get('r', 'b'), undefined);
  pass(19_999);
  assert.ok(known.get('r', 'a'));
  pass(1);
  assert.equal(known.get('r', 'a'), undefined);
});

test('a host may ask for a day and gets a minute', () => {
  const { memory: known, pass } = memory();
  known.set('r', 'a', answer('RateLimited', { retryAfterSeconds: 86_400 }));
  pass(60_000);
  assert.equal(known.get('r', 'a'), undefined);
});

test('three silences in a row make a host silent for a minute, whatever the credential', () => {
  const { memory: known, pass } = memory();
  for (const credential of ['a', 'b']) known.set('r', credential, answer('Unreachable', { silence: true }));
  assert.equal(known.get('r', 'a'), undefined);
  known.set('r', 'a', answer('Unreachable', { silence: true }));
  assert.equal(known.get('r', 'c')?.verdict, 'Unreachable');
  assert.equal(known.get('other', 'a'), undefined);
  pass(60_000);
  assert.equal(known.get('r', 'a'), undefined);
});

test('an answer, be it an error, is no silence', () => {
  const { memory: known } = memory();
  for (let round = 0; round < 5; round += 1) known.set('r', 'a', answer('Unreachable'));
  assert.equal(known.get('r', 'a'), undefined);
  for (const result of [
    { silence: true } as const,
    {},
    { silence: true } as const,
    { silence: true } as const,
  ])
    known.set('r', 'a', answer('Unreachable', result));
  assert.equal(known.get('r', 'a'), undefined);
});
