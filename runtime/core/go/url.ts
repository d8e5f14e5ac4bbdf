/**
 * Hosts and paths of `https://…` texts as Go's net/url takes them apart. The kubelet runs every registry key and every
 * matchImages pattern through it, so what it accepts, unescapes and refuses decides which credential is used.
 *
 * Source of the rule: url.Parse of Go 1.26 for texts that begin with `https://` or `http://`; net.SplitHostPort.
 */
import { goQuoteBytes, toByteText } from './text.ts';

// IPv6 addresses between brackets, as Go's net/netip reads them, with its error texts.
// Source of the rule: netip.ParseAddr of Go 1.26, for texts that come from `[...]` in a URL host.

/**
 * Checks the text between the brackets of a URL host, a byte text (see go-bytes.ts).
 *
 * @returns undefined when it is an IPv6 address (with or without a zone), else the error in Go's words
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

/** The parts that the kubelet looks at, as byte texts (see go-bytes.ts), unescaped. */
export interface GoUrl {
  /** With port, without user info. */
  readonly host: string;
  /** Empty, or from the first slash on, without query and fragment. */
  readonly path: string;
}

export type GoUrlResult =
  | { readonly ok: true; readonly url: GoUrl }
  | { readonly ok: false; readonly goText: string };

type Mode = 'host' | 'zone' | 'other';

class UrlFault extends Error {}

/**
 * Takes `raw` apart.
 *
 * @param raw must begin with `https://` or `http://`
 */
export function parseGoUrl(raw: string): GoUrlResult {
  return parseGoUrlBytes(toByteText(raw));
}

/** The same for a byte text. */
export function parseGoUrlBytes(bytes: string): GoUrlResult {
  const hash = bytes.indexOf('#');
  const front = hash < 0 ? bytes : bytes.slice(0, hash);
  try {
    const url = parseFront(front);
    const fragment = attempt(() => unescape(hash < 0 ? '' : bytes.slice(hash + 1), 'other'));
    return fragment === undefined ? { ok: true, url } : wrong(bytes, fragment);
  } catch (error) {
    if (error instanceof UrlFault) return wrong(front, error.message);
    throw error;
  }
}

function parseFront(front: string): GoUrl {
  // oxlint-disable-next-line no-control-regex -- Go refuses exactly these
  if (/[\u0000-\u001f\u007f]/.test(front)) throw new UrlFault('net/url: invalid control character in URL');
  const [beforeQuery = ''] = front.slice(front.indexOf('://') + 3).split('?', 1);
  const slash = beforeQuery.indexOf('/');
  const authority = slash < 0 ? beforeQuery : beforeQuery.slice(0, slash);
  const host = parseAuthority(authority);
  return { host, path: unescape(slash < 0 ? '' : beforeQuery.slice(slash), 'other') };
}

function parseAuthority(authority: string): string {
  const at = authority.lastIndexOf('@');
  const host = parseHost(authority.slice(at + 1));
  if (at < 0) return host;
  const user = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) throw new UrlFault('net/url: invalid userinfo');
  const colon = user.indexOf(':');
  unescape(colon < 0 ? user : user.slice(0, colon), 'other');
  unescape(colon < 0 ? '' : user.slice(colon + 1), 'other');
  return host;
}

function parseHost(host: string): string {
  const open = host.lastIndexOf('[');
  if (open > 0) throw new UrlFault('invalid IP-literal');
  if (open === 0) return parseIpLiteral(host);
  const colon = host.indexOf(':');
  if (colon >= 0) checkPort(host.slice(colon));
  return unescape(host, 'host');
}

function parseIpLiteral(host: string): string {
  const close = host.lastIndexOf(']');
  if (close < 0) throw new UrlFault("missing ']' in host");
  checkPort(host.slice(close + 1));
  const inside = host.slice(1, close);
  const zone = inside.indexOf('%25');
  const name =
    zone < 0
      ? unescape(inside, 'host')
      : unescape(inside.slice(0, zone), 'host') + unescape(inside.slice(zone), 'zone');
  const fault = ipLiteralFault(name);
  if (fault !== undefined) throw new UrlFault(fault);
  return `[${name}]${host.slice(close + 1)}`;
}

function checkPort(colonPort: string): void {
  if (colonPort === '' || /^:[0-9]*$/.test(colonPort)) return;
  throw new UrlFault(`invalid port ${goQuoteBytes(colonPort)} after host`);
}

const HOST_CHARACTER = /[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"]/;

/** Checks first, from left to right, then replaces `%xx` by its byte. */
function unescape(text: string, mode: Mode): string {
  if (mode === 'other' && !text.includes('%')) return text;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '%') {
      checkEscape(text.slice(at, at + 3), mode);
      at += 2;
    } else if (mode !== 'other' && text.charCodeAt(at) < 0x80 && !HOST_CHARACTER.test(text[at] ?? '')) {
      throw new UrlFault(`invalid character ${goQuoteBytes(text[at] ?? '')} in host name`);
    }
  }
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function checkEscape(escape: string, mode: Mode): void {
  const refused = new UrlFault(`invalid URL escape ${goQuoteBytes(escape)}`);
  if (!/^%[0-9a-fA-F]{2}$/.test(escape)) throw refused;
  const value = Number.parseInt(escape.slice(1), 16);
  // In a host only bytes beyond ASCII may be escaped, and the percent sign before a zone.
  if (mode === 'host' && value < 0x80 && escape !== '%25') throw refused;
  if (mode !== 'zone' || escape === '%25' || value === 0x20) return;
  if (value >= 0x80 || !HOST_CHARACTER.test(String.fromCharCode(value))) throw refused;
}

/** The message of the UrlFault that `body` throws. */
function attempt(body: () => unknown): string | undefined {
  try {
    body();
    return undefined;
  } catch (error) {
    if (error instanceof UrlFault) return error.message;
    throw error;
  }
}

function wrong(bytes: string, message: string): GoUrlResult {
  return { ok: false, goText: `parse ${goQuoteBytes(bytes)}: ${message}` };
}

/**
 * Host and port as net.SplitHostPort gives them; where it refuses, the whole text is the host and there is no port, which is
 * what the kubelet makes of it (`[::1]` without a port keeps its brackets).
 */
export function splitHostPort(hostPort: string): { readonly host: string; readonly port: string } {
  const whole = { host: hostPort, port: '' };
  const colon = hostPort.lastIndexOf(':');
  if (colon < 0) return whole;
  const port = hostPort.slice(colon + 1);
  if (!hostPort.startsWith('[')) {
    const host = hostPort.slice(0, colon);
    return /[:[\]]/.test(host) || /[[\]]/.test(port) ? whole : { host, port };
  }
  const end = hostPort.indexOf(']');
  if (end < 0 || end + 1 !== colon) return whole;
  if (hostPort.indexOf('[', 1) >= 0 || hostPort.indexOf(']', end + 1) >= 0) return whole;
  return { host: hostPort.slice(1, end), port };
}
