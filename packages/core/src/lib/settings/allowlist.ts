import * as z from 'zod'

/** A host and a port; an IPv6 address stands in brackets. */
const hostAndPort = /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\%,]+):\d{1,5}$/i

const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)

const isEntry = (entry: string): boolean => hostAndPort.test(entry) && URL.canParse(`http://${entry}`)

/** The setting `PLAT_OUTBOUND_ALLOW` (D53): what outbound calls may reach although it is private. */
export const OutboundAllowlist = z
  .string()
  .refine((text) => entriesOf(text).every(isEntry), 'must be host:port, separated by commas')

const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443' }

/** The host and port of an address, spelled as `parseAllow` spells them. */
export const hostPortOf = ({ hostname, port, protocol }: URL): string => `${hostname}:${port || defaultPorts[protocol]}`

/** The targets that a valid setting names. */
export const parseAllowlist = (text: string): ReadonlySet<string> =>
  new Set(entriesOf(text).map((entry) => hostPortOf(new URL(`http://${entry}`))))
