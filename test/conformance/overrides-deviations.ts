/** Deliberate differences from HyperShift for registry overrides. */
import { type Deviation, deviates, text } from './suite.ts';

function hostOf(place: string): string {
  return place.split('/')[0] ?? '';
}

/** Whether a source or mirror of a mirror set has a tag or a digest. */
function isPinned(place: string): boolean {
  return place.includes('@') || /:[^/:]*[^/:0-9][^/:]*$/.test(place);
}

/** Whether a case of a cache expects an answer for `field`. */
function asks(input: unknown, field: string): boolean {
  return (input as { asked?: readonly string[] }).asked?.includes(field) === true;
}

const NO_REPOSITORY: Deviation = deviates(
  'a source or mirror with a tag or a digest is none: the kinds of mirror sets do not admit it, and it is reported',
  (input) => isPinned(text(input, 'source')) || isPinned(text(input, 'mirror')),
);

export const OVERRIDES_DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  'overrides/mirror-override-resolve': [
    NO_REPOSITORY,
    deviates(
      'a wildcard source covers every subdomain, as it does for the container runtime; the peer refuses it',
      (input) => text(input, 'source').startsWith('*.'),
    ),
    deviates(
      'a mirror may have one path element; the peer cannot compose the reference',
      (input) => text(input, 'source').split('/').length > 2 && text(input, 'mirror').split('/').length <= 2,
    ),
    deviates(
      'a rule for one host says nothing about another; the peer compares hosts only sometimes',
      (input) => hostOf(text(input, 'source')) !== hostOf(text(input, 'image')),
    ),
    deviates('a source may be a host with its port; the peer reads the port as a tag', (input) =>
      /^[^/]+:\d+$/.test(text(input, 'source')),
    ),
    deviates(
      'a mirror may have any number of path elements; the peer drops or misses some',
      (input) =>
        text(input, 'source').split('/').length === 2 && text(input, 'mirror').split('/').length !== 2,
    ),
    deviates(
      'a source covers everything below it, as it does for the container runtime',
      (input) =>
        text(input, 'source').split('/').length > 2 &&
        text(input, 'image').startsWith(`${text(input, 'source')}/`),
    ),
    deviates(
      'an image of the Docker library is looked up with its namespace; the peer cannot compose the reference',
      (input) => /^docker\.io\/[^/]+$/.test(text(input, 'image')),
    ),
  ],
  'overrides/release-lookup-match': [
    NO_REPOSITORY,
    deviates(
      'a source matches whole path segments from the start; the peer finds its text anywhere',
      (input) => {
        const rest = text(input, 'image').slice(text(input, 'source').length);
        return !text(input, 'image').startsWith(text(input, 'source')) || !/^(?:$|[/:@])/.test(rest);
      },
    ),
  ],
  'overrides/olm-annotation-overrides': [
    deviates(
      'a digest has 64 hexadecimal digits; the peer looks for "@sha256:" only, and the pods fail later',
      (input) =>
        Object.values(input as object).some((value) => /@sha256:(?![0-9a-f]{64}$)/.test(String(value))),
    ),
  ],
  'overrides/olm-catalog-images': [
    deviates(
      'a catalog that no mirror has is taken from its own registry; the peer gives up',
      (input) =>
        Object.keys((input as { overrides?: object | null }).overrides ?? {}).length > 0 &&
        ((input as { existing?: readonly string[] }).existing ?? []).some((image) =>
          image.startsWith('registry.redhat.io/redhat/'),
        ),
    ),
  ],
  'overrides/seek-override': [
    deviates(
      'an image that is there is believed to be there for ten minutes; the peer asks again after five',
      (input) => (input as { set?: unknown }).set === true && asks(input, 'ttlSeconds'),
    ),
  ],
  'overrides/image-reference-parse': [
    deviates("a host may be an IPv6 address, as for the kubelet; the peer's grammar is older", (input) =>
      text(input, 'spec').startsWith('['),
    ),
    deviates(
      'the reference of a catalog stays as it is written; the peer spells the library of Docker Hub out',
      (input) => /^docker\.io\/[^/]+$/.test(text(input, 'spec')),
    ),
  ],
  'overrides/olm-golden': [
    deviates('a release up to 4.21 has four catalogs, as HyperShift has had then', (input) =>
      /^4\.(?:\d|1\d|2[01])(?!\d)/.test(text(input, 'version')),
    ),
    deviates(
      "the Service in front of a catalog stays with HyperShift's operator",
      (input) => text(input, 'kind') === 'Service',
    ),
  ],
  'overrides/component-wiring': [
    deviates(
      'the requirement names the control plane operator and the ignition server; the former hands the variable on',
      (input) => text(input, 'component') === 'hosted-cluster-config-operator',
    ),
    deviates(
      "the flag's targets are applied to each mirror and to the image itself, in its place; the peer tries them as further mirrors",
      (input) => 'env' in (input as object) && 'registryOverrides' in (input as object),
    ),
    deviates(
      "the mirror set of the hosted cluster's nodes stays with HyperShift's operator",
      (input) => 'imageContentSources' in (input as object),
    ),
  ],
};
