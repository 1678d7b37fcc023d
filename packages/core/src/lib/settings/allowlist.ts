import * as z from 'zod'
import { parseList } from './list.ts'

/** IPv6 addresses are in brackets. */
const hostAndPort = /^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\%,]+):\d{1,5}$/i

const isHostAndPort = (item: string): boolean => hostAndPort.test(item) && URL.canParse(`http://${item}`)

export const OutboundAllowlist = z
  .string()
  .refine((text) => parseList(text).every(isHostAndPort), 'must be host:port, separated by commas')

const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443' }

export const hostPortOf = ({ hostname, port, protocol }: URL): string => `${hostname}:${port || defaultPorts[protocol]}`

export const parseAllowlist = (text: string): ReadonlySet<string> =>
  new Set(parseList(text).map((item) => hostPortOf(new URL(`http://${item}`))))
