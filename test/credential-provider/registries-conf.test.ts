/** Reading registries.conf in its plain form gives what a TOML parser gives, and never takes a file that the runtime refuses. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import {
  parsePlain,
  parseRegistriesConf,
  type Registry,
} from '../../runtime/core/mirrors/registries-conf.ts';
import { pullSources } from '../../runtime/credential-provider/auth-file.ts';
import { readConfFiles } from '../../runtime/credential-provider/plugin/conf-files.ts';
import { table, test } from '../support/suite.ts';
import { makeNode } from './support/node-double.ts';

const IMAGE = 'a.example.com/team/app';
const label = fc.constantFrom('a', 'b', 'c', 'example', 'mirror', 'com', 'org');
const host = fc.array(label, { minLength: 2, maxLength: 3 }).map((labels) => labels.join('.'));
const place = fc
  .tuple(host, fc.constantFrom('', ':5000'), fc.constantFrom('', '/team', '/team/app', '/te'))
  .map((parts) => parts.join(''));
const near = fc.oneof(
  place,
  fc.constantFrom('a.example.com', 'a.example.com/team', 'a.example.com/te', 'example.com'),
);
const pull = fc.constantFrom('', '\npull-from-mirror = "digest-only"', '\npull-from-mirror = "tag-only"');
const mirror = fc
  .tuple(place, pull)
  .map(([location, from]) => `[[registry.mirror]]\nlocation = "${location}"${from}\n`);
const prefix = fc.oneof(
  fc.constant(''),
  near.map((one) => `prefix = "${one}"\n`),
  fc.constantFrom('prefix = ""\n', 'prefix = "*.example.com"\n', 'prefix = "*.com"\n'),
);
const registry = fc
  .tuple(prefix, near, fc.array(mirror, { maxLength: 3 }))
  .map(
    ([own, location, mirrors]) => `[[registry]]\n${own}location = "${location}"\n\n${mirrors.join('\n')}\n`,
  );
const filler = '[[registry]]\nlocation = "filler.example.net"\n';
const file = fc
  .array(registry, { minLength: 1, maxLength: 6 })
  .map((tables) => `short-name-mode = ""\n\n${tables.join('\n')}\n${filler}`);

function whole(text: string): readonly Registry[] {
  return parseRegistriesConf(text, parse);
}

test('the plain reader and the TOML parser agree', () => {
  fc.assert(
    fc.property(file, (text) => assert.equal(JSON.stringify(parsePlain(text)), JSON.stringify(parse(text)))),
    { numRuns: 200 },
  );
});

test('a prefix that stands twice counts the first time; a wildcard needs no location', () => {
  const read = whole(
    '[[registry]]\nprefix = "x.io"\nlocation = "first.io"\n[[registry]]\nprefix = "x.io"\nlocation = "second.io"\n[[registry]]\nprefix = "*.y.io"\n',
  );
  assert.deepEqual(
    read.map(({ prefix: at, location }) => `${at} ${location}`),
    ['x.io first.io', '*.y.io '],
  );
});

test('a search registry with a path is refused', () => {
  assert.throws(
    () => whole('unqualified-search-registries = ["docker.io", "quay.io/team"]\n'),
    /quay\.io\/team/,
  );
  assert.doesNotThrow(() => whole('unqualified-search-registries = ["docker.io"]\n'));
});

/** Files that the runtime refuses, and with them every pull. */
const SLIPS: Readonly<Record<string, string>> = {
  scheme: '[[registry]]\nlocation = "https://x.io"\n',
  'prefix without location': '[[registry]]\nprefix = "x.io"\n',
  'mirror without location': '[[registry]]\nlocation = "x.io"\n\n[[registry.mirror]]\ninsecure = true\n',
  'pull-from-mirror on the registry': '[[registry]]\nlocation = "x.io"\npull-from-mirror = "all"\n',
  'unknown pull-from-mirror':
    '[[registry]]\nlocation = "x.io"\n\n[[registry.mirror]]\nlocation = "y.io"\npull-from-mirror = "never"\n',
  'key twice': '[[registry]]\nlocation = "x.io"\nlocation = "y.io"\n',
  'string not closed': '[[registry]]\nlocation = "x.io\n',
  'key after a blank line': '[[registry]]\nlocation = "x.io"\n\nlocation = "y.io"\n',
  'contradicting blocked':
    '[[registry]]\nlocation = "x.io"\nblocked = true\n\n[[registry]]\nprefix = "z.io"\nlocation = "x.io"\n',
  'digest-only twice':
    '[[registry]]\nlocation = "x.io"\nmirror-by-digest-only = true\n\n[[registry.mirror]]\nlocation = "y.io"\npull-from-mirror = "all"\n',
  'wildcard with a path': '[[registry]]\nprefix = "*.x.io/y"\nlocation = "x.io"\n',
  'version 1': '[registries.search]\nregistries = ["docker.io"]\n',
  'half a table': '[[registry\n',
  'alias of a name with a registry': '[aliases]\n"x.io/app" = "y.io/app"\n',
  'alias for a name without a registry': '[aliases]\nnginx = "library/nginx"\n',
  'alias with a tag': '[aliases]\nnginx = "y.io/nginx:1"\n',
  'wrong type behind a capital letter': '[[registry]]\nlocation = "x.io"\nBlocked = "yes"\n',
};
const slips = Object.entries(SLIPS).map(([name, slip]) => ({ name, reason: 'the runtime refuses it', slip }));
table(test, slips, ({ slip }) => {
  for (const text of [`${filler}\n${slip}`, `${slip}\n${filler}`]) {
    assert.throws(() => whole(text));
    assert.throws(() => parseRegistriesConf(text, (all) => parsePlain(all) ?? parse(all)));
  }
});

test('keys have no case', () => {
  const text = '[[Registry]]\nLocation = "x.io"\nBlocked = true\n[[Registry.Mirror]]\nLOCATION = "y.io"\n';
  const [registry] = parseRegistriesConf(text, (all) => parsePlain(all) ?? parse(all));
  assert.deepEqual(registry, {
    prefix: 'x.io',
    location: 'x.io',
    blocked: true,
    insecure: false,
    mirrors: [{ location: 'y.io', pullFrom: 'all' }],
  });
});

test('a prefix of slashes alone stays and matches nothing', () => {
  const registries = whole('[[registry]]\nprefix = "/"\nlocation = "a.example.com"\n');
  assert.equal(registries[0]?.prefix, '');
  assert.deepEqual(pullSources(registries, IMAGE), []);
});

test('a folder called like a drop-in is skipped', () => {
  const node = makeNode({ registriesConf: '', dropins: { '20.conf': '# here' } });
  try {
    mkdirSync(join(node.folder, 'registries.conf.d', '10.conf'));
    const texts = readConfFiles(node.options, undefined).map(({ text }) => text);
    assert.deepEqual(texts, ['', '# here']);
  } finally {
    node.remove();
  }
});

test('good aliases change nothing', () => {
  const text =
    '[[registry]]\nlocation = "x.io"\n[aliases]\nnginx = "docker.io/library/nginx"\n"team/app" = ""\n';
  assert.equal(whole(text)[0]?.location, 'x.io');
});

test('what else TOML allows is left to the parser', () => {
  for (const odd of [
    "[[registry]]\nlocation = 'x.io'\n",
    '[[ registry ]]\nlocation = "x.io"\n',
    '[[registry]]\nlocation="x.io" # why\n',
    '[[registry]]\nlocation = "\\u0078.io"\n',
  ])
    assert.equal(whole(`${odd}\n${filler}`)[0]?.location, 'x.io', odd);
});
