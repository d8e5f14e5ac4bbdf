/** Documents of the agent from texts, and back. */

import { redact, reveal } from '../../../runtime/core/redacted.ts';
import { type AgentDocument, parseDocument } from '../../../runtime/global-pull-secret/agent/document.ts';

export const readDocument = (text: string): AgentDocument =>
  parseDocument(redact(new Uint8Array(Buffer.from(text))), 'the source');
export const documentText = (document: AgentDocument): string =>
  Buffer.from(reveal(document.bytes)).toString();
