import * as z from 'zod'
import { entriesOf } from './list.ts'

/** IPv6 addresses are in brackets. */
const hostAndPort = /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\%,]+):\d{1,5}$/i

const isEntry = (entry: string): boolean => hostAndPort.test(entry) && URL.canParse(`http://${entry}`)

export const OutboundAllowlist = z
  .string()
  .refine((text) => entriesOf(text).every(isEntry), 'must be host:port, separated by commas')

const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443' }

export const hostPortOf = ({ hostname, port, protocol }: URL): string => `${hostname}:${port || defaultPorts[protocol]}`

export const parseAllowlist = (text: string): ReadonlySet<string> =>
  new Set(entriesOf(text).map((entry) => hostPortOf(new URL(`http://${entry}`))))
