/**
 * IPv6 addresses between brackets, as Go's net/netip reads them, with its error texts.
 *
 * Source of the rule: netip.ParseAddr of Go 1.26, for texts that come from `[...]` in a URL host.
 */
import { goQuoteBytes } from './quote.ts';

/**
 * Checks the text between the brackets of a URL host, a byte text (see go-bytes.ts).
 *
 * @returns undefined when it is an IPv6 address (with or without a zone), else the error in Go's words
 * @example
 * ```ts
 * import { ipLiteralFault } from './ip.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(ipLiteralFault('::1'), undefined);
 * assert.equal(ipLiteralFault('10.0.0.1'), 'invalid IP-literal');
 * assert.match(ipLiteralFault('1:2') ?? '', /address string too short/);
 * ```
 */
export function ipLiteralFault(text: string): string | undefined {
  const first = /[.:%]/.exec(text)?.[0];
  if (first === undefined) return fault(text, 'unable to parse IP');
  if (first === '%') return fault(text, 'missing IPv6 address');
  if (first === '.') return ipv4Fault(text, text) ?? 'invalid IP-literal';
  const percent = text.indexOf('%');
  if (percent >= 0 && percent === text.length - 1) return fault(text, 'zone must be a non-empty string');
  return ipv6Fault(text, percent < 0 ? text : text.slice(0, percent));
}

/** `whole` is what the error names; `address` is without the zone. */
function ipv6Fault(whole: string, address: string): string | undefined {
  const state: Ipv6State = { whole, rest: address, filled: 0, ellipsis: address.startsWith('::') };
  if (state.ellipsis) state.rest = address.slice(2);
  if (state.ellipsis && state.rest === '') return undefined;
  while (state.filled < 16) {
    const step = readGroup(state);
    if (step === 'end') break;
    if (step !== 'more') return step.fault;
  }
  if (state.rest !== '') return fault(whole, 'trailing garbage after address', state.rest);
  if (state.filled < 16) return state.ellipsis ? undefined : fault(whole, 'address string too short');
  return state.ellipsis ? fault(whole, 'the :: must expand to at least one field of zeros') : undefined;
}

interface Ipv6State {
  readonly whole: string;
  rest: string;
  /** Bytes of the address known so far. */
  filled: number;
  ellipsis: boolean;
}

type Step = 'more' | 'end' | { readonly fault: string };

function readGroup(state: Ipv6State): Step {
  const digits = /^[0-9a-fA-F]*/.exec(state.rest)?.[0] ?? '';
  if (digits.length > 4) return stop(state, 'each group must have 4 or less digits');
  if (digits === '') return stop(state, 'each colon-separated field must have at least one digit');
  if (state.rest[digits.length] === '.') return readEmbeddedIpv4(state);
  state.filled += 2;
  state.rest = state.rest.slice(digits.length);
  return state.rest === '' ? 'end' : readColon(state);
}

function readColon(state: Ipv6State): Step {
  if (state.rest[0] !== ':') return stop(state, 'unexpected character, want colon');
  if (state.rest.length === 1) return stop(state, 'colon must be followed by more characters');
  state.rest = state.rest.slice(1);
  if (state.rest[0] !== ':') return 'more';
  if (state.ellipsis) return stop(state, 'multiple :: in address');
  state.ellipsis = true;
  state.rest = state.rest.slice(1);
  return state.rest === '' ? 'end' : 'more';
}

function readEmbeddedIpv4(state: Ipv6State): Step {
  if (!state.ellipsis && state.filled !== 12) {
    return stop(state, 'embedded IPv4 address must replace the final 2 fields of the address');
  }
  if (state.filled + 4 > 16) {
    return stop(state, 'too many hex fields to fit an embedded IPv4 at the end of the address');
  }
  const inner = ipv4Fault(state.whole, state.rest);
  if (inner !== undefined) return { fault: inner };
  state.rest = '';
  state.filled += 4;
  return 'end';
}

function ipv4Fault(whole: string, text: string): string | undefined {
  let value = '';
  let fields = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (/[0-9]/.test(character)) {
      if (value === '0') return fault(whole, 'IPv4 field has octet with leading zero');
      value += character;
      if (Number(value) > 255) return fault(whole, 'IPv4 field has value >255');
      continue;
    }
    if (character !== '.') return fault(whole, 'unexpected character', text.slice(at));
    if (value === '' || at === text.length - 1) {
      return fault(whole, 'IPv4 field must have at least one digit', text.slice(at));
    }
    if (fields === 3) return fault(whole, 'IPv4 address too long');
    fields += 1;
    value = '';
  }
  return fields < 3 ? fault(whole, 'IPv4 address too short') : undefined;
}

function stop(state: Ipv6State, message: string): Step {
  return { fault: fault(state.whole, message, state.rest) };
}

function fault(whole: string, message: string, at = ''): string {
  const place = at === '' ? '' : ` (at ${goQuoteBytes(at)})`;
  return `invalid host: ParseAddr(${goQuoteBytes(whole)}): ${message}${place}`;
}
