/** Every alert that can be rendered leads to a section of a runbook, every section belongs to an alert, and all have one form. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { allAlerts } from '../../build/reference/alerts.ts';
import { RUNBOOKS } from '../../charts/shared/monitoring.ts';
import { test } from '../support/suite.ts';

const folder = new URL('../../docs/runbooks/', import.meta.url).pathname;

const files = readdirSync(folder).filter((name) => name !== 'README.md');
const headings = (file: string): readonly string[] =>
  [...readFileSync(folder + file, 'utf8').matchAll(/^## (.+)$/gm)].map(([, name = '']) => name);

test('every alert points at a section that is there', () => {
  const all = allAlerts();
  assert.ok(all.length >= 9, String(all.length));
  for (const { alert, annotations } of all) {
    const [, file = '', anchor] =
      /^(.+)#(.+)$/.exec(annotations['runbook_url']?.slice(RUNBOOKS.length + 1) ?? '') ?? [];
    assert.equal(anchor, alert.toLowerCase(), alert);
    assert.ok(existsSync(folder + file), `${alert}: there is no docs/runbooks/${file}`);
    assert.ok(headings(file).includes(alert), `${alert} has no section in docs/runbooks/${file}`);
  }
});

test('every section belongs to an alert', () => {
  const known = new Set(allAlerts().map(({ alert }) => alert));
  const unknown = files.flatMap((file) =>
    headings(file)
      .filter((name) => !known.has(name))
      .map((name) => `${file}: ${name}`),
  );
  assert.deepEqual(unknown, []);
});

test('every section says what it means, what to type first, what the causes are and how to fix them', () => {
  for (const file of files)
    for (const [name = '', ...body] of readFileSync(folder + file, 'utf8')
      .split(/^## /m)
      .slice(1)
      .map((part) => part.split('\n'))) {
      const text = body.join('\n');
      assert.match(text, /meaning/i, `${file}: ${name} has no meaning`);
      assert.match(text, /first command[\s\S]*```/i, `${file}: ${name} has no first command`);
      assert.match(text, /^\|.*\|$/m, `${file}: ${name} has no table of causes`);
      assert.match(text, /\bfix/i, `${file}: ${name} does not say how to fix it`);
    }
});

test('the index lists every file', () => {
  const index = readFileSync(`${folder}README.md`, 'utf8');
  assert.ok(files.length > 0);
  for (const file of files) assert.ok(index.includes(`(${file})`), file);
});

test('a fleet may publish the runbooks elsewhere', () => {
  const elsewhere = allAlerts('https://wiki.example.com/pullwright/');
  assert.ok(elsewhere.length > 0);
  for (const { alert, annotations } of elsewhere)
    assert.match(
      annotations['runbook_url'] ?? '',
      /^https:\/\/wiki\.example\.com\/pullwright\/[a-z-]+\.md#/,
      alert,
    );
});
