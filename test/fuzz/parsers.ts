/** Every parser of text that comes from outside: what good input looks like, how it is called, what holds of its answer. */
import type { Parser } from './parser.ts';
import { ADAPTER_PARSERS } from './parsers-adapter.ts';
import { ANSWER_PARSERS } from './parsers-answers.ts';
import { CLUSTER_PARSERS } from './parsers-cluster.ts';
import { FILE_PARSERS } from './parsers-files.ts';
import { LOOKUP_PARSERS } from './parsers-lookups.ts';
import { NODE_PARSERS } from './parsers-node.ts';
import { PULL_SECRET_PARSERS } from './parsers-pull-secret.ts';
import { RECORD_PARSERS } from './parsers-records.ts';
import { REGISTRY_PARSERS } from './parsers-registry.ts';
import { TEXT_PARSERS } from './parsers-text.ts';

export const PARSERS: readonly Parser[] = [
  ...TEXT_PARSERS,
  ...FILE_PARSERS,
  ...LOOKUP_PARSERS,
  ...NODE_PARSERS,
  ...PULL_SECRET_PARSERS,
  ...RECORD_PARSERS,
  ...REGISTRY_PARSERS,
  ...ANSWER_PARSERS,
  ...ADAPTER_PARSERS,
  ...CLUSTER_PARSERS,
];
