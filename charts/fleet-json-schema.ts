/** The fleet file as JSON Schema, for editors that complete and check while one types. */
import { z } from 'zod';
import { clusterSchema, fleetSchema } from './fleet-schema.ts';
import { SYSTEMS } from './systems.ts';

type Schema = Record<string, unknown>;

/**
 * JSON Schema (2020-12) of a `fleet.yaml`.
 *
 * @example
 * ```ts
 * import { fleetJsonSchema } from './fleet-json-schema.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.match(JSON.stringify(fleetJsonSchema()), /"global-pull-secret"/);
 * ```
 */
export function fleetJsonSchema(): Schema {
  const fleet = schemaOf(fleetSchema);
  const { extend: _onlyTypeScript, ...clusterFields } = fieldsOf(schemaOf(clusterSchema));
  const systems: Schema = {
    type: 'object',
    description: 'What runs in the cluster: a section for each system',
    additionalProperties: false,
    properties: Object.fromEntries(SYSTEMS.map((system) => [system.name, sectionSchema(system)])),
  };
  const defaults = fieldsOf(fleet)['defaults'] as Schema;
  return {
    $id: 'https://pullwright.dev/schema/fleet.schema.json',
    ...fleet,
    title: 'Pullwright fleet',
    properties: {
      ...fieldsOf(fleet),
      defaults: { ...defaults, properties: { ...fieldsOf(defaults), systems } },
      clusters: {
        ...(fieldsOf(fleet)['clusters'] as Schema),
        items: { ...schemaOf(clusterSchema), properties: { ...clusterFields, systems } },
      },
    },
  };
}

/** The schema as it is printed and published. */
export function fleetSchemaText(): string {
  return `${JSON.stringify(fleetJsonSchema(), null, 2)}\n`;
}

function sectionSchema(system: (typeof SYSTEMS)[number]): Schema {
  const { $schema: _shared, ...section } = schemaOf(system.config);
  return { description: system.summary, anyOf: [{ type: ['boolean', 'null'] }, section] };
}

function schemaOf(schema: z.ZodType): Schema {
  const { ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return plain;
}

function fieldsOf(schema: Schema): Schema {
  return schema['properties'] as Schema;
}
