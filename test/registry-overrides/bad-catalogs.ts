/** Invalid catalog image annotations of release 4.22, and their errors. */

export interface BadCatalogs {
  readonly name: string;
  readonly reason: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

export const CATALOG_NAMES: readonly string[] = [
  'certified-operators',
  'community-operators',
  'redhat-operators',
];
const DIGEST = `sha256:${'c'.repeat(64)}`;
const GOOD = `mirror.example.com/index@${DIGEST}`;

/** The same image for each of `names`. */
export function annotated(
  value: string,
  names: readonly string[] = CATALOG_NAMES,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [`hypershift.openshift.io/${name}-catalog-image`, value]));
}

export const GOOD_CATALOGS: Readonly<Record<string, string>> = annotated(GOOD);

const some = (count: number): Readonly<Record<string, string>> =>
  annotated(GOOD, CATALOG_NAMES.slice(0, count));
const LAST = 'hypershift.openshift.io/redhat-operators-catalog-image';

export const BAD_CATALOGS: readonly BadCatalogs[] = [
  {
    name: 'one of three',
    reason: 'all or none',
    annotations: { [LAST]: GOOD },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'two of three',
    reason: 'all or none',
    annotations: some(2),
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'two of three, and the one that 4.22 has no more',
    reason: 'it does not stand for another',
    annotations: { ...some(2), ...annotated(GOOD, ['redhat-marketplace']) },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'one that is empty',
    reason: 'empty is absent',
    annotations: { ...GOOD_CATALOGS, [LAST]: '' },
    says: /all the values for the 3 default catalogs/,
  },
  {
    name: 'a tag',
    reason: 'only digests',
    annotations: annotated('mirror.example.com/index:v4.22'),
    says: /referenced only by digest/,
  },
  {
    name: 'one tag among digests',
    reason: 'only digests',
    annotations: { ...GOOD_CATALOGS, [LAST]: 'mirror.example.com/index:v4.22' },
    says: /referenced only by digest/,
  },
  {
    name: 'a short digest',
    reason: 'the whole syntax counts',
    annotations: annotated('mirror.example.com/index@sha256:abc'),
    says: /is not an image reference/,
  },
  {
    name: 'a digest of another kind',
    reason: 'the whole syntax counts',
    annotations: annotated(`mirror.example.com/index@sha512:${'c'.repeat(128)}`),
    says: /referenced only by digest/,
  },
  {
    name: 'a scheme',
    reason: 'the whole syntax counts',
    annotations: annotated(`https://mirror.example.com/index@${DIGEST}`),
    says: /is not an image reference/,
  },
  {
    name: 'a space',
    reason: 'the whole syntax counts',
    annotations: annotated(` ${GOOD}`),
    says: /is not an image reference/,
  },
];
