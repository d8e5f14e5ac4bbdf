/** The page and the schemas of what commands print as JSON. */
import { z } from 'zod';
import { jsonText } from '../../runtime/core/text.ts';
import type { CommandPage } from './cli.ts';
import { type FieldRow, fieldRows } from './fields.ts';
import { codeSpan, prose, table } from './markdown.ts';
import type { OutputForm } from './outputs/form.ts';
import { OUTPUTS } from './outputs/outputs.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Fields of a form. */
export function outputFields({ schema }: OutputForm): readonly FieldRow[] {
  return fieldRows(asOne(formSchema(schema)));
}

/** JSON Schema (2020-12) of what a command prints. */
export function outputSchema(command: string, forms: readonly OutputForm[]): Schema {
  const schemas = forms.map(({ when, schema }) => ({
    description: `Printed ${when}`,
    ...formSchema(schema),
  }));
  const [only] = schemas;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `https://pullwright.dev/schema/output/${command}.schema.json`,
    title: `pullwright ${command} --output json`,
    ...(schemas.length === 1 ? only : { anyOf: schemas }),
  };
}

/** The files below `docs/reference/output`, by their names. */
export function outputSchemaFiles(): readonly (readonly [name: string, text: string])[] {
  return Object.entries(OUTPUTS).map(([command, forms]) => [
    `output/${command}.schema.json`,
    jsonText<Schema>(outputSchema(command, forms)),
  ]);
}

/** `docs/reference/output.md` */
export function outputPage(pages: readonly CommandPage[]): string {
  return [
    '# JSON output',
    '',
    'What commands print with `--output json`, field by field. `--output yaml` prints the same where a command has it, but for `doctor`, whose YAML is there',
    'to be applied. For each command there is a JSON Schema (draft 2020-12).',
    '',
    '## What may change',
    '',
    '- Within a major version: no field is removed or renamed, none changes its type or meaning, and a required one stays required. What is a list stays one.',
    '- A minor version may add fields, forms that new flags ask for, and values of reasons, codes and verdicts. Programs have to ignore fields that they do',
    '  not know. The schemas say what one version prints, and are closed (`additionalProperties: false`): take those of the version that runs.',
    '- Texts for people (`message`, `summary`, `fix`, `advice`, `why`) may change in any version. Go by codes, reasons, states and verdicts.',
    '- Lists without an order in their description may come in another order.',
    '',
    '## Where a run fails',
    '',
    'With exit code 0 the whole document is printed. With 1 it is the whole document where something was found that is not in order, and nothing where the run',
    'could not be made. With 2, wrong usage, stdout is empty. Errors and warnings for people go to stderr. With `--watch`, one document follows the other.',
    '',
    ...pages.flatMap(({ spec }) => commandSection(spec.name, spec.program, OUTPUTS[spec.name] ?? [])),
  ].join('\n');
}

function commandSection(
  name: string,
  program: string | undefined,
  forms: readonly OutputForm[],
): readonly string[] {
  if (forms.length === 0) return [];
  return [
    `## ${name}`,
    '',
    `${codeSpan(`${program ?? `pullwright ${name}`} --output json`)}: [schema](output/${name}.schema.json), [command](cli.md#${name}).`,
    '',
    ...forms.flatMap((form) => [
      `${formTitle(form)}:`,
      '',
      ...table(
        ['field', 'type', ''],
        outputFields(form).map(({ path, type, required, description }) => [
          `${codeSpan(path)}${required ? '' : ' (optional)'}`,
          prose(type),
          prose(description),
        ]),
      ),
    ]),
  ];
}

function formTitle({ when, schema }: OutputForm): string {
  const isList = formSchema(schema)['type'] === 'array';
  return prose(`${isList ? 'A list' : 'An object'}, ${when}`);
}

/** Numbers are bounded by what JSON can hold in any case. */
function formSchema(schema: z.ZodType): Schema {
  const { $schema: _said, ...plain } = z.toJSONSchema(schema, {
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  return plain;
}

/** With alternatives of an object as one object, in which only what all have is required. */
function asOne(schema: Schema): Schema {
  const { oneOf, items, properties } = schema as {
    readonly oneOf?: readonly Schema[];
    readonly items?: Schema;
    readonly properties?: Readonly<Record<string, Schema>>;
  };
  if (oneOf !== undefined) return { ...schema, oneOf: undefined, ...asOne(together(oneOf)) };
  const parts = Object.entries(properties ?? {}).map(([name, part]) => [name, asOne(part)] as const);
  return {
    ...schema,
    ...(items === undefined ? {} : { items: asOne(items) }),
    ...(properties === undefined ? {} : { properties: Object.fromEntries(parts) }),
  };
}

function together(branches: readonly Schema[]): Schema {
  const requiredBy = (branch: Schema): ReadonlySet<unknown> =>
    new Set(branch['required'] as readonly unknown[]);
  const fields = branches.flatMap((branch) =>
    Object.entries(branch['properties'] as Readonly<Record<string, Schema>>),
  );
  const properties = Map.groupBy(fields, ([name]) => name);
  return {
    type: 'object',
    required: [...properties.keys()].filter((name) =>
      branches.every((branch) => requiredBy(branch).has(name)),
    ),
    properties: Object.fromEntries(
      [...properties].map(([name, same]) => {
        const values = same.flatMap(([, { const: value }]) => (value === undefined ? [] : [value]));
        const [, first] = same[0] ?? [];
        return [name, values.length === 0 ? first : { enum: values, description: first?.['description'] }];
      }),
    ),
  };
}
