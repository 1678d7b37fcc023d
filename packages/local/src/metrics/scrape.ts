import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Interceptor } from '../gateway/exchange.ts'
import type { Metrics } from './metrics.ts'

/**
 * Serves `GET /metrics` to callers with the configured token. If no token is configured, only callers on this machine
 * may read the metrics. Unauthorised callers get the response for an unknown path.
 */
export const createScrape =
  (metrics: Metrics, token: string | undefined): Interceptor =>
  async (request, path) => {
    if (path !== '/metrics' || request.method !== 'GET') return undefined
    // A request through a proxy on this machine may look local, so a configured token is always required.
    if (!(token === undefined ? isLocal(request) : hasToken(request, token))) return undefined
    const { contentType, text } = await metrics.read()
    const headers = new Map([
      ['content-type', contentType],
      ['cache-control', 'no-store'],
      ['x-content-type-options', 'nosniff'],
    ])
    return { status: 200, headers, body: Buffer.from(text) }
  }

const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i
const proxyHeader = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/

/** A proxy on this machine forwards remote requests, and a web page's host name may resolve to this machine. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const isProxied = Object.keys(headers).some((name) => proxyHeader.test(name))
  return isLoopback(socket.remoteAddress ?? '') && !isProxied && loopbackName.test(headers.host ?? '')
}

function isLoopback(address: string): boolean {
  const plainAddress = address.replace(/^::ffff:(?=\d+\.)/, '')
  return plainAddress === '::1' || (isIP(plainAddress) === 4 && plainAddress.startsWith('127.'))
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const receivedToken = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]
  return receivedToken !== undefined && timingSafeEqual(digest(receivedToken), digest(token))
}

/** `timingSafeEqual` requires buffers of equal length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
