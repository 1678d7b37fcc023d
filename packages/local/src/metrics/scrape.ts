import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { HttpAnswer } from '../gateway/result.ts'
import type { Metrics } from './metrics.ts'

/** Answers whoever may read the metrics; undefined for everybody and everything else, who meet an unknown path. */
export type Scrape = (request: IncomingMessage, path: string) => Promise<HttpAnswer | undefined>

/** `GET /metrics`, for whoever has the token; where none is set, for this machine itself. */
export const createScrape =
  (metrics: Metrics, token: string | undefined): Scrape =>
  async (request, path) => {
    if (path !== '/metrics' || request.method !== 'GET') return undefined
    // Some proxies on this machine cannot be told from it: once there is a token, it is asked for.
    if (!(token === undefined ? isFromHere(request) : hasToken(request, token))) return undefined
    const { contentType, text } = await metrics.read()
    const headers = new Map([
      ['content-type', contentType],
      ['cache-control', 'no-store'],
      ['x-content-type-options', 'nosniff'],
    ])
    return { status: 200, headers, body: Buffer.from(text) }
  }

const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i
const ofProxies = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/

/** A proxy on this machine speaks for somebody else, and a page may have had its name lead here. */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  const isProxied = Object.keys(headers).some((name) => ofProxies.test(name))
  return isLoopback(socket.remoteAddress ?? '') && !isProxied && loopbackName.test(headers.host ?? '')
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '')
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const given = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]
  return given !== undefined && timingSafeEqual(digest(given), digest(token))
}

/** Of one length, whatever was given. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
