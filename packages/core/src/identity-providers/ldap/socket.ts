import { isIP, type Socket } from 'node:net'
import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from 'node:tls'
import { MalformedResponse } from './ber.ts'
import { type ProviderSettings } from '../record.ts'
import { isStartTlsAccepted, startTlsRequest } from './wire.ts'
import { outboundConnect, type OutboundOverrides } from '../../outbound/outbound.ts'
import { BoundedCache } from '../../lib/bounded-cache.ts'

/** Connections to a directory: always checked as other calls are, and never without TLS. */

const defaultPorts: Readonly<Record<string, string>> = { 'ldap:': '389', 'ldaps:': '636' }

/** A directory's host and port, as the rules for outbound calls read addresses. */
function targetOf(address: string): URL {
  const { protocol, port } = new URL(address)
  const target = new URL(address.replace(/^ldaps?:/i, 'https:'))
  target.port = port || (defaultPorts[protocol] ?? '')
  return target
}

/** Opens a connection to a directory; it ends with the signal. Throws `OutboundFailure`. */
export const connectDirectory = (
  { url = '' }: ProviderSettings,
  signal: AbortSignal,
  surroundings?: OutboundOverrides,
): Promise<Socket> => outboundConnect(targetOf(url), signal, surroundings)

// Reading hundreds of certificates takes tens of milliseconds, in which nothing else happens.
const contexts = new BoundedCache<SecureContext>(20)

/** The authorities that Node trusts, and another one. */
function trusting(caCertificate: string): SecureContext {
  const known = contexts.get(caCertificate)
  const context = known ?? createSecureContext({ ca: [...getCACertificates('default'), caCertificate] })
  if (known === undefined) contexts.set(caCertificate, context)
  return context
}

/**
 * Goes on in TLS, at once for ldaps, else after StartTLS. The certificate is for the host of the directory's address, from an
 * authority that Node trusts or the provider names.
 */
export async function upgradeToTls(socket: Socket, { url = '', caCertificate }: ProviderSettings): Promise<TLSSocket> {
  if (!/^ldaps:/i.test(url)) await startTls(socket)
  const host = targetOf(url).hostname.replace(/^\[(.*)\]$/, '$1')
  const trust = caCertificate === undefined ? {} : { secureContext: trusting(caCertificate) }
  const name = isIP(host) === 0 ? { servername: host } : {}
  return new Promise((resolve, reject) => {
    const secured = connect({ socket, host, ...name, ...trust, rejectUnauthorized: true })
    secured.once('secureConnect', () => resolve(secured))
    secured.on('error', reject)
    // A connection that ends during the handshake may end without an error.
    secured.on('close', () => reject(new MalformedResponse('the connection ended')))
  })
}

async function startTls(socket: Socket): Promise<void> {
  socket.write(startTlsRequest)
  let bytes = Buffer.alloc(0)
  // Breaking off a loop over a stream would end the stream.
  const isAgreed = await new Promise<boolean>((resolve, reject) => {
    const take = (part: Buffer) => {
      try {
        bytes = Buffer.concat([bytes, part])
        const answer = isStartTlsAccepted(bytes)
        if (answer === undefined) return
        socket.off('data', take).pause()
        resolve(answer)
      } catch (error) {
        reject(error)
      }
    }
    socket.on('data', take)
    socket.once('close', () => reject(new MalformedResponse('the connection ended')))
  })
  if (!isAgreed) throw new MalformedResponse('StartTLS was refused')
}
