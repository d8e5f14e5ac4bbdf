/** The provider rejects every registries.conf that the runtime rejects. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseRegistriesConf } from '../../runtime/core/mirrors/registries-conf.ts';
import { pullSources } from '../../runtime/credential-provider/auth-file.ts';
import { readConfFiles } from '../../runtime/credential-provider/plugin/conf-files.ts';
import { table, test } from '../support/suite.ts';
import { makeNode } from './support/node-double.ts';

const IMAGE = 'a.example.com/team/app';
const filler = '[[registry]]\nlocation = "filler.example.net"\n';
test('the first entry of a duplicate prefix counts; a wildcard needs no location', () => {
  const read = parseRegistriesConf(
    '[[registry]]\nprefix = "x.io"\nlocation = "first.io"\n[[registry]]\nprefix = "x.io"\nlocation = "second.io"\n[[registry]]\nprefix = "*.y.io"\n',
  );
  assert.deepEqual(
    read.map(({ prefix: at, location }) => `${at} ${location}`),
    ['x.io first.io', '*.y.io '],
  );
});

test('a search registry with a path is refused', () => {
  assert.throws(
    () => parseRegistriesConf('unqualified-search-registries = ["docker.io", "quay.io/team"]\n'),
    /quay\.io\/team/,
  );
  assert.doesNotThrow(() => parseRegistriesConf('unqualified-search-registries = ["docker.io"]\n'));
});

/** Files that the runtime rejects, so that every pull fails. */
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
  for (const text of [`${filler}\n${slip}`, `${slip}\n${filler}`])
    assert.throws(() => parseRegistriesConf(text));
});

test('keys have no case', () => {
  const text = '[[Registry]]\nLocation = "x.io"\nBlocked = true\n[[Registry.Mirror]]\nLOCATION = "y.io"\n';
  const [registry] = parseRegistriesConf(text);
  assert.deepEqual(registry, {
    prefix: 'x.io',
    location: 'x.io',
    blocked: true,
    insecure: false,
    mirrors: [{ location: 'y.io', pullFrom: 'all' }],
  });
});

test('a prefix of slashes alone stays and matches nothing', () => {
  const registries = parseRegistriesConf('[[registry]]\nprefix = "/"\nlocation = "a.example.com"\n');
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
  assert.equal(parseRegistriesConf(text)[0]?.location, 'x.io');
});

test('what else TOML allows is left to the parser', () => {
  for (const odd of [
    "[[registry]]\nlocation = 'x.io'\n",
    '[[ registry ]]\nlocation = "x.io"\n',
    '[[registry]]\nlocation="x.io" # why\n',
    '[[registry]]\nlocation = "\\u0078.io"\n',
  ])
    assert.equal(parseRegistriesConf(`${odd}\n${filler}`)[0]?.location, 'x.io', odd);
});
