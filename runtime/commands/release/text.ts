/** What `release` prints. */

import { toYaml } from '../../kube/yaml.ts';
import type { SignatureVerdict } from '../../registry/release-signature.ts';
import type { CheckedPlace } from '../../registry-overrides/release-check.ts';
import type { ReleaseDifference } from '../../registry-overrides/release-difference.ts';
import type { Release } from '../../registry-overrides/release-image.ts';
import type { FoundRelease, PlaceFailure } from '../../registry-overrides/release-lookup.ts';
import { counted } from '../../rules/text/counted.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { oneLined, onOneLine } from '../../rules/text/printable.ts';

export interface ReleaseCheckReport {
  readonly components: number;
  readonly places: number;
  readonly gaps: readonly CheckedPlace[];
  /** For oc-mirror; absent where nothing is known to be missing. */
  readonly imageSet?: Readonly<Record<string, unknown>>;
}

export interface ReleaseAnswer {
  readonly found: FoundRelease<Release>;
  readonly signature: SignatureVerdict;
  readonly check?: ReleaseCheckReport;
}

/** What is printed as JSON of a release. */
export interface ReleaseOutput {
  readonly version: string;
  readonly from: string;
  readonly skipped: readonly PlaceFailure[];
  readonly digest: string;
  readonly architecture: string;
  readonly signature: SignatureVerdict;
  readonly components: Readonly<Record<string, string>>;
  readonly check?: ReleaseCheckReport;
}

/** What is printed as JSON with `--image-for`. */
export interface ComponentOutput {
  readonly component: string;
  readonly image: string;
}

/** `value` as JSON or YAML. */
export function formatted<Printed = never>(value: NoInfer<Printed>, output: string): string {
  return output === 'json' ? jsonText<Printed>(value) : toYaml(value);
}

/** The release, or what a check of it found. */
export function releaseText({ found, signature, check }: ReleaseAnswer, output: string): string {
  const { release, from, failures } = found;
  const { version, digest, architecture } = release;
  const components = Object.fromEntries(release.components);
  if (output !== 'text')
    return formatted<ReleaseOutput>(
      {
        version,
        from,
        skipped: failures,
        digest,
        architecture,
        signature,
        components,
        ...(check && { check }),
      },
      output,
    );
  const width = Math.max(0, ...Object.keys(components).map((name) => name.length));
  return [
    `release       ${onOneLine(version)}`,
    `from          ${from}`,
    `digest        ${digest}`,
    `architecture  ${architecture}`,
    `signature     ${signature.state}: ${onOneLine(signature.message)}`,
    '',
    ...(check === undefined
      ? Object.entries(components).map(([name, image]) => onOneLine(`${name.padEnd(width)}  ${image}`))
      : checkLines(check)),
    '',
  ].join('\n');
}

function checkLines({ components, places, gaps: found, imageSet }: ReleaseCheckReport): readonly string[] {
  const gaps = oneLined(found);
  const whole = `${counted(components, 'image')} at ${counted(places, 'place')}`;
  if (gaps.length === 0) return [`checked       ${whole}: all are there`];
  return [
    `checked       ${whole}: ${counted(gaps.length, 'gap')}`,
    '',
    ...gaps.map(({ component, reference, verdict, message, for: planes }) =>
      [`${verdict}  ${reference}`, `  ${component}, for ${planes.join(', ')}: ${message}`].join('\n'),
    ),
    ...(imageSet === undefined ? [] : ['---', toYaml(imageSet).trimEnd()]),
  ];
}

/** What another release changes. */
export function differenceText(found: ReleaseDifference, output: string): string {
  if (output !== 'text') return formatted<ReleaseDifference>(found, output);
  const { added, removed, changed, unchanged } = found;
  return [
    `from  ${found.from}`,
    `to    ${found.to}`,
    '',
    ...Object.entries(added).map(([name, image]) => onOneLine(`+ ${name}  ${image}`)),
    ...Object.entries(removed).map(([name, image]) => onOneLine(`- ${name}  ${image}`)),
    ...Object.entries(changed).map(([name, { from, to }]) => onOneLine(`~ ${name}  ${from} -> ${to}`)),
    `${Object.keys(added).length} added, ${Object.keys(removed).length} removed, ${Object.keys(changed).length} changed, ${unchanged} unchanged`,
    '',
  ].join('\n');
}
