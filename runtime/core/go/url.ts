/**
 * Parses host and path of `https://…` URLs like Go's net/url. The kubelet parses every registry key and every matchImages
 * pattern this way. What Go accepts, unescapes and rejects therefore decides which credential is used.
 *
 * Source of the rule: url.Parse of Go 1.26 for texts that begin with `https://` or `http://`; net.SplitHostPort.
 */
import { type GoResult, goQuoteBytes } from './text.ts';

/** Whether `text`, the host without its brackets, is an IPv6 address, with or without a zone. */
function isIpLiteral(text: string): boolean {
  const [address = '', zone] = text.split(/%(.*)/s, 2);
  return zone !== '' && /^[\da-fA-F:.]+$/.test(address) && URL.canParse(`http://[${address}]`);
}

/**
 * The parts that the kubelet uses, unescaped, as byte texts (see text.ts): the host with the port, without user info; and the
 * path, which is empty, or from the first slash on, without query and fragment.
 */
export type GoUrl = Readonly<ReturnType<typeof parseFront>>;

type Mode = 'host' | 'zone' | 'other';

class UrlFault extends Error {}

/**
 * Parses a byte text.
 *
 * @param bytes must begin with `https://` or `http://`
 */
export function parseGoUrl(bytes: string): GoResult<GoUrl> {
  const hash = bytes.indexOf('#');
  const front = hash < 0 ? bytes : bytes.slice(0, hash);
  let part = front;
  try {
    const value = parseFront(front);
    part = bytes;
    unescape(hash < 0 ? '' : bytes.slice(hash + 1), 'other');
    return { ok: true, value };
  } catch (error) {
    if (!(error instanceof UrlFault)) throw error;
    return { ok: false, goText: `parse ${goQuoteBytes(part)}: ${error.message}` };
  }
}

function parseFront(front: string) {
  // oxlint-disable-next-line no-control-regex -- Go rejects exactly these
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
  for (const part of user.split(/:(.*)/, 2)) unescape(part, 'other');
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
  if (!isIpLiteral(name)) throw new UrlFault(`invalid host: ParseAddr(${goQuoteBytes(name)})`);
  return `[${name}]${host.slice(close + 1)}`;
}

function checkPort(colonPort: string): void {
  if (colonPort === '' || /^:[0-9]*$/.test(colonPort)) return;
  throw new UrlFault(`invalid port ${goQuoteBytes(colonPort)} after host`);
}

const HOST_CHARACTER = /[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"]/;

/** Validates from left to right, then replaces each `%xx` with its byte. */
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
  // In a host, only bytes beyond ASCII and the percent sign before an IPv6 zone may be escaped.
  if (mode === 'host' && value < 0x80 && escape !== '%25') throw refused;
  if (mode !== 'zone' || escape === '%25' || value === 0x20) return;
  if (value >= 0x80 || !HOST_CHARACTER.test(String.fromCharCode(value))) throw refused;
}

/**
 * Splits host and port like net.SplitHostPort. If Go returns an error, the whole text is the host and the port is empty, as in
 * the kubelet (`[::1]` without a port keeps its brackets).
 */
export function splitHostPort(hostPort: string): { readonly host: string; readonly port: string } {
  const [, bracketed, plain = hostPort, port = ''] =
    /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(hostPort) ?? [];
  return { host: bracketed ?? plain, port };
}
