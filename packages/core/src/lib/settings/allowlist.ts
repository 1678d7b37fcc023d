import * as z from 'zod'
import { entriesOf } from './list.ts'

/** A host and a port; IPv6 addresses in brackets. */
const hostAndPort = /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\%,]+):\d{1,5}$/i

const isEntry = (entry: string): boolean => hostAndPort.test(entry) && URL.canParse(`http://${entry}`)

/** The setting `PLAT_OUTBOUND_ALLOW`: private addresses that outbound calls may reach. */
export const OutboundAllowlist = z
  .string()
  .refine((text) => entriesOf(text).every(isEntry), 'must be host:port, separated by commas')

const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443' }

/** The host and port of a URL, in the form of `parseAllowlist`. */
export const hostPortOf = ({ hostname, port, protocol }: URL): string => `${hostname}:${port || defaultPorts[protocol]}`

/** The targets of a valid setting. */
export const parseAllowlist = (text: string): ReadonlySet<string> =>
  new Set(entriesOf(text).map((entry) => hostPortOf(new URL(`http://${entry}`))))
