import { timingSafeEqual } from 'node:crypto'
import { config } from '@platform/core/config'
import { sha256 } from '@platform/core/id'
import { log } from '@platform/core/log'
import * as z from 'zod'
import type { GatewayEvent } from './request.ts'

const secretHeader = 'x-plat-front-secret'
const Address = z.union([z.ipv4(), z.ipv6()])

/**
 * Replaces the address of a trusted front (a reverse proxy or CDN) with the address of the client. The front appends it
 * to `X-Forwarded-For`, and API Gateway appends the address of the front. The client may have forged earlier entries.
 * The functions have only a hash of the secret, and the rest of the platform does not see the header.
 */
export function withClientAddress(event: GatewayEvent): GatewayEvent {
  const { [secretHeader]: secret, ...headers } = event.headers
  if (secret === undefined || config.PLAT_FRONT_SECRET_SHA256 === '') return event
  if (!timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(config.PLAT_FRONT_SECRET_SHA256))) return event
  const { http } = event.requestContext
  const route = (headers['x-forwarded-for'] ?? '').split(',').map((entry) => entry.trim())
  if (route.at(-1) === http.sourceIp) route.pop()
  const client = Address.safeParse(withoutPort(route.at(-1) ?? ''))
  if (!client.success) warnOnce()
  const sourceIp = client.data ?? http.sourceIp
  return { ...event, headers, requestContext: { ...event.requestContext, http: { ...http, sourceIp } } }
}

/**
 * Whether a request must be rejected because it did not come from the front; `event` is that of `withClientAddress`.
 */
export const isPastFront = (received: GatewayEvent, event: GatewayEvent): boolean =>
  config.PLAT_FRONT_REQUIRED === 'true' && config.PLAT_FRONT_SECRET_SHA256 !== '' && event === received

/** Some fronts add the port of the client. */
const withoutPort = (entry: string): string =>
  entry.replace(/^([\d.]+):\d+$/, '$1').replace(/^\[([^\]]*)\](?::\d+)?$/, '$1')

let hasWarned = false

function warnOnce(): void {
  if (!hasWarned) log('warn', 'The front sends no client address in X-Forwarded-For, so its own address is recorded')
  hasWarned = true
}
