import { timingSafeEqual } from 'node:crypto'
import { config } from '@platform/core/config'
import { sha256 } from '@platform/core/id'
import { log } from '@platform/core/log'
import * as z from 'zod'
import type { GatewayEvent } from './request.ts'

const secretHeader = 'x-plat-front-secret'
const Address = z.union([z.ipv4(), z.ipv6()])

/**
 * Replaces the address of a trusted front (a reverse proxy or CDN) with the address of the client. The front appends
 * the client's address to `X-Forwarded-For`, and API Gateway that of the front. Earlier entries may be forged.
 * The functions have only a hash of the secret, and a valid secret is removed from the headers.
 */
export function withClientAddress(event: GatewayEvent): GatewayEvent {
  const { [secretHeader]: secret, ...headers } = event.headers
  if (secret === undefined || config.PLAT_FRONT_SECRET_SHA256 === '') return event
  if (!timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(config.PLAT_FRONT_SECRET_SHA256))) return event
  const { http } = event.requestContext
  const addresses = (headers['x-forwarded-for'] ?? '').split(',').map((entry) => entry.trim())
  if (addresses.at(-1) === http.sourceIp) addresses.pop()
  const client = Address.safeParse(withoutPort(addresses.at(-1) ?? ''))
  if (!client.success) warnOnce()
  const sourceIp = client.data ?? http.sourceIp
  return { ...event, headers, requestContext: { ...event.requestContext, http: { ...http, sourceIp } } }
}

/** Whether a request bypassed the front that the operator requires; `event` is the result of `withClientAddress`. */
export const isFrontBypassed = (received: GatewayEvent, event: GatewayEvent): boolean =>
  config.PLAT_FRONT_REQUIRED === 'true' && config.PLAT_FRONT_SECRET_SHA256 !== '' && event === received

/** Removes the port of the client, which some fronts add. */
const withoutPort = (entry: string): string =>
  entry.replace(/^([\d.]+):\d+$/, '$1').replace(/^\[([^\]]*)\](?::\d+)?$/, '$1')

let hasWarned = false

function warnOnce(): void {
  if (!hasWarned) log('warn', 'The front sends no client address in X-Forwarded-For, so its own address is recorded')
  hasWarned = true
}
