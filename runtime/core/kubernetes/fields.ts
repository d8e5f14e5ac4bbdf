/** Field types that several sections of the fleet file share. Each error names the expected value. */
import { z } from 'zod';

/** Input or output of a schema, read-only. */
export type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends (...args: never) => unknown
    ? T
    : T extends object
      ? { readonly [Key in keyof T]: Frozen<T[Key]> }
      : T;

/** Fields that may be absent from an object of options; a present one must not be undefined. */
export function optional<S extends z.ZodRawShape>(
  fields: S,
): { readonly [K in keyof S]: z.ZodExactOptional<S[K]> } {
  const entries = Object.entries(fields).map(([name, field]) => [name, z.exactOptional(field)]);
  return Object.fromEntries(entries) as { readonly [K in keyof S]: z.ZodExactOptional<S[K]> };
}

/** A DNS label: names of clusters, namespaces, Secrets' short names. */
export const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'expected lower-case letters, digits and "-", at most 63');

/** A DNS subdomain: names of most objects. */
export const dnsName = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    'expected lower-case letters, digits, "-" and "."',
  );

/** An address or a network, such as `10.1.0.0/16`. */
export const networkField = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], {
  error: 'expected an address or a network such as "10.1.0.0/16"',
});

/** A duration in Go syntax: `30s`, `5m`, `1h30m`. */
export const durationField = z
  .string()
  .regex(/^(0|(\d+(ms|s|m|h))+)$/, 'expected a duration such as "30s", "5m" or "1h30m"');

const IMAGE =
  'expected an image with registry and tag or digest, such as "registry.example.com/team/pullwright:0.1.0"';

/** An image with a tag or a digest: without one, pods of one rollout could run different programs. */
export const imageReference = z
  .string()
  .regex(
    /^[a-z0-9][\w.-]*(:\d+)?(\/[a-z0-9][a-z0-9._-]*)+(:[\w][\w.-]{0,127})?(@sha256:[a-f0-9]{64})?$/i,
    IMAGE,
  )
  .regex(/(:[\w][\w.-]{0,127}|@sha256:[a-f0-9]{64})$/, IMAGE);

/** A number of pods or a percentage. */
export const countOrPercent = z.union([z.int().min(1), z.string().regex(/^(100|[1-9]\d?)%$/)], {
  error: 'expected a number of at least 1 or a share such as "10%"',
});

/** A relative folder below another one. */
export const folderField = z
  .string()
  .regex(
    /^(\.|[\w-][\w.-]*(\/[\w-][\w.-]*)*)$/,
    'expected a relative folder such as "clusters/prod", without ".."',
  )
  .max(1000, 'expected at most 1000 characters');

/** Labels: names to values. */
export const labelMap = z.record(z.string().min(1).max(317), z.string().max(63));
