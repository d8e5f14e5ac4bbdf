/** A rendered object with one field after another set as a thief would: every field that the API server's OpenAPI document has. */
import type { Answer } from '../control-plane/request.ts';

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}
type Schemas = Readonly<Record<string, Schema>>;
type Fields = Readonly<Record<string, unknown>>;
interface Change {
  readonly path: string;
  /** Undefined: the field goes. */
  readonly value: unknown;
}

/** Outcome of all changes of one object, without those that validation rejects before any policy runs. */
export interface Walked {
  /** Admitted changes whose object differs from the rendered one. */
  readonly admitted: readonly string[];
  readonly refused: number;
}

/**
 * Tries them all.
 *
 * @param document of `/openapi/v3/...`
 * @param kind e.g. `io.k8s.api.batch.v1.Job`
 */
export async function walked(
  document: { readonly components: { readonly schemas: Schemas } },
  kind: string,
  object: object,
  apply: (changed: object) => Promise<Answer>,
): Promise<Walked> {
  const { schemas } = document.components;
  const { spec } = object as Fields;
  const all = [...changes({ schemas, path: 'spec' }, schemas[kind]?.properties?.['spec'] ?? {}, spec)];
  const admitted: string[] = [];
  const same = resultOf(await apply(object));
  let refused = 0;
  const next = all.values();
  const worker = async (): Promise<void> => {
    for (const { path, value } of next) {
      const { status, body } = await apply({ ...object, spec: value });
      if (String(body.message).includes('ValidatingAdmissionPolicy')) refused += 1;
      else if (status < 300 && resultOf({ status, body }) !== same) admitted.push(path);
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  return { admitted: admitted.sort(), refused };
}

/** But what the API server makes up for each. */
function resultOf({ body }: Answer): string {
  const text = JSON.stringify(body.spec);
  const uid: string = body.metadata?.uid ?? '';
  return uid === '' ? text : text.replaceAll(uid, '');
}

interface At {
  readonly schemas: Schemas;
  readonly path: string;
}

function resolved(schemas: Schemas, schema: Schema): Schema {
  const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
  return ref === undefined ? schema : resolved(schemas, schemas[ref.slice(ref.lastIndexOf('/') + 1)] ?? {});
}

function* changes(at: At, from: Schema, value: unknown): Generator<Change> {
  const { schemas, path } = at;
  const schema = resolved(schemas, from);
  if (value !== undefined && path !== 'spec') yield { path: `${path} removed`, value: undefined };
  if (schema.properties !== undefined) yield* ofFields(at, schema, value as Fields | undefined);
  else if (schema.items !== undefined)
    yield* ofItems(at, schema.items, value as readonly unknown[] | undefined);
  else if (schema.additionalProperties !== undefined)
    yield {
      path: `${path}.walk`,
      value: { ...(value as object | undefined), walk: sample(schemas, schema.additionalProperties) },
    };
  else
    for (const one of samples(schema))
      if (one !== value)
        yield { path: samples(schema).length > 1 ? `${path}=${String(one)}` : path, value: one };
}

function* ofFields({ schemas, path }: At, schema: Schema, value: Fields | undefined): Generator<Change> {
  const base = value ?? required(schemas, schema);
  for (const [name, field] of Object.entries(schema.properties ?? {}))
    for (const change of changes({ schemas, path: `${path}.${name}` }, field, value?.[name])) {
      const { [name]: _, ...others } = base;
      yield {
        path: change.path,
        value: change.value === undefined ? others : { ...others, [name]: change.value },
      };
    }
}

function* ofItems({ schemas, path }: At, items: Schema, value: readonly unknown[] = []): Generator<Change> {
  for (const change of changes({ schemas, path: `${path}[+]` }, items, undefined))
    yield { path: change.path, value: [...value, change.value] };
  for (const [index, one] of value.entries())
    for (const change of changes({ schemas, path: `${path}[${index}]` }, items, one))
      yield {
        path: change.path,
        value: value.flatMap((own, at) =>
          at === index ? (change.value === undefined ? [] : [change.value]) : [own],
        ),
      };
}

function required(schemas: Schemas, schema: Schema): Fields {
  return Object.fromEntries(
    (schema.required ?? []).map((name) => [name, sample(schemas, schema.properties?.[name] ?? {})]),
  );
}

function sample(schemas: Schemas, from: Schema): unknown {
  const schema = resolved(schemas, from);
  if (schema.properties !== undefined) return required(schemas, schema);
  if (schema.items !== undefined) return [sample(schemas, schema.items)];
  return schema.additionalProperties === undefined ? samples(schema)[0] : {};
}

function samples(schema: Schema): readonly unknown[] {
  if (schema.enum !== undefined) return schema.enum.filter((one) => one !== '').slice(0, 4);
  if (schema.type === 'boolean') return [true, false];
  if (schema.type === 'integer') return [1, 0];
  if (schema.oneOf !== undefined || schema.format === 'int-or-string') return [1];
  return ['walk'];
}
