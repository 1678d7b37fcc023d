import { type IncomingHttpHeaders, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { type PeerCertificate, TLSSocket } from 'node:tls'
import { messageOf } from './log.ts'
import { agentFor, ProxyError, proxyFor } from './proxy.ts'

const timeoutMs = 15_000

/** A step of a request. */
export type Hop = 'DNS' | 'Proxy' | 'Connection' | 'TLS' | 'Platform'

/** The step at which a request failed. `cause` is a code of the system, or a message. */
export type Failure = { hop: Hop; cause: string }

export type Response = {
  status: number
  headers: IncomingHttpHeaders
  body: string
  address: string | undefined
  durationMs: number
  /** The certificate of the server, and the reason why it is not valid, if any; undefined without TLS. */
  tls: { certificate: PeerCertificate; problem: string | undefined } | undefined
}

/** Sends a GET request, even to a server whose certificate is not valid. The URL must contain no secrets. */
export async function probe(url: URL): Promise<Response | Failure> {
  const isSecure = url.protocol === 'https:'
  const isProxied = proxyFor(url) !== undefined
  let hop: Hop = isProxied ? 'Proxy' : isIP(url.hostname.replaceAll(/[[\]]/g, '')) ? 'Connection' : 'DNS'
  const startedMs = performance.now()
  try {
    return await new Promise((resolve, reject) => {
      const timeLimit = AbortSignal.timeout(timeoutMs)
      const agent = agentFor(url, { keepAlive: false })
      // The result contains the problem of an invalid certificate.
      const options = { agent, signal: timeLimit, rejectUnauthorized: false }
      const outgoing = (isSecure ? httpsRequest : httpRequest)(url, options)
      const onConnected = () => (hop = isSecure ? 'TLS' : 'Platform')
      outgoing.once('socket', (socket) => {
        if (isProxied) onConnected()
        socket.once('lookup', (error) => (hop = error ? hop : 'Connection'))
        socket.once('connect', onConnected)
        socket.once('secureConnect', () => (hop = 'Platform'))
      })
      outgoing.once('response', (incoming) => {
        const { statusCode: status = 0, headers, socket } = incoming
        const tls = socket instanceof TLSSocket ? tlsOf(socket) : undefined
        const { remoteAddress: address } = socket
        const durationMs = Math.round(performance.now() - startedMs)
        text(incoming).then((body) => resolve({ status, headers, body, address, durationMs, tls }), reject)
      })
      outgoing.once('error', (error) =>
        reject(timeLimit.aborted ? new Error(`no response in ${timeoutMs / 1000} s`) : error),
      )
      outgoing.end()
    })
  } catch (error) {
    const hasCode = error instanceof Error && 'code' in error && !(error instanceof ProxyError)
    return { hop, cause: hasCode ? String(error.code) : messageOf(error) }
  }
}

function tlsOf(socket: TLSSocket): Response['tls'] {
  // Despite its type, `authorizationError` is the code of the error.
  const problem: unknown = socket.authorizationError
  const isValid = problem === null || problem === undefined
  return { certificate: socket.getPeerCertificate(), problem: isValid ? undefined : messageOf(problem) }
}
