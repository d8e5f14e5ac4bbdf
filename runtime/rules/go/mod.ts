/**
 * What Go does with text, bytes, numbers and JSON, as far as the kubelet, CRI-O and the operators rely on it.
 *
 * - `base64.ts`: Base64 as Go's encoding/base64 decodes it
 * - `bytes.ts`: Go texts are bytes
 * - `duration.ts`: Durations as Go writes them
 * - `glob.ts`: Shell patterns as Go's filepath.Match judges them
 * - `ip.ts`: IPv6 addresses between brackets, as Go's net/netip reads them, with its error texts
 * - `json-encode.ts`: JSON as Go's json.Marshal writes it
 * - `json.ts`: JSON as Go's encoding/json reads it
 * - `quote.ts`: Texts in quotes as Go's error messages show them (strconv.Quote)
 * - `url.ts`: Hosts and paths of `https://…` texts as Go's net/url takes them apart
 *
 * @module
 */
export {};
