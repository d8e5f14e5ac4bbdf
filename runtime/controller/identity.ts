/** The uid that a server would give, for objects of a folder: the same in every run, and recognisable. */
import { createHash } from 'node:crypto';
import type { KubeObject } from '../rules/kubernetes/object.ts';

/** Version digit of a UUID that no API server hands out. */
const MARK = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

/** `object` with a uid, made from its name when it has none. */
export function withIdentity(object: KubeObject): KubeObject {
  if (object.metadata.uid !== undefined) return object;
  const { kind, apiVersion, metadata } = object;
  const digest = createHash('sha256')
    .update(`${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`)
    .digest('hex');
  const uid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return { ...object, metadata: { ...metadata, uid } };
}

/** `object` without a uid that {@link withIdentity} made. */
export function withoutSyntheticIdentity(object: KubeObject): KubeObject {
  const { uid, ...metadata } = object.metadata;
  return uid !== undefined && MARK.test(uid) ? { ...object, metadata } : object;
}
