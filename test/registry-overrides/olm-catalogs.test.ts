import assert from 'node:assert/strict';
import { catalogCandidates, catalogsOf } from '../../runtime/registry-overrides/olm-catalogs.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly version: string;
  readonly catalogs: 3 | 4;
  /** Tags that are tried, newest first. */
  readonly tags: readonly string[];
}

const NEWEST_TAGS = ['v4.22', 'v4.21', 'v4.20', 'v4.19'];
const ROWS: readonly Row[] = [
  {
    name: '4.21',
    reason: 'the last one with a marketplace',
    version: '4.21.9',
    catalogs: 4,
    tags: ['v4.21', 'v4.20', 'v4.19', 'v4.18'],
  },
  { name: '4.22', reason: 'the first one without', version: '4.22.0', catalogs: 3, tags: NEWEST_TAGS },
  { name: '4.23', reason: 'not published yet', version: '4.23.0', catalogs: 3, tags: NEWEST_TAGS },
  { name: '5.0', reason: 'not published yet', version: '5.0.0-0.nightly', catalogs: 3, tags: NEWEST_TAGS },
  { name: '4.2', reason: 'no minor below 0', version: '4.2.0', catalogs: 4, tags: ['v4.2', 'v4.1', 'v4.0'] },
  {
    name: '3.11',
    reason: 'long ago',
    version: '3.11.0',
    catalogs: 4,
    tags: ['v3.11', 'v3.10', 'v3.9', 'v3.8'],
  },
  { name: 'text', reason: 'a version that is not known', version: 'latest', catalogs: 3, tags: [] },
];

table(test, ROWS, ({ version, catalogs, tags }) => {
  const found = catalogsOf(version);
  assert.equal(found.length, catalogs);
  assert.equal(
    found.some(({ name }) => name === 'redhat-marketplace'),
    catalogs === 4,
  );
  const [catalog] = found;
  assert.ok(catalog !== undefined);
  assert.deepEqual(
    catalogCandidates(catalog, version, undefined).map(({ image }) => image.split(':').at(-1)),
    tags,
  );
});
