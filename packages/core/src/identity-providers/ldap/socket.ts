import { isIP, type Socket } from 'node:net'
import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from 'node:tls'
import { MalformedResponse } from './ber.ts'
import type { ProviderSettings } from '../record.ts'
import { isStartTlsAccepted, startTlsRequest } from './wire.ts'
import { outboundConnect, type OutboundOverrides } from '../../outbound/outbound.ts'
import { BoundedCache } from '../../lib/bounded-cache.ts'

const defaultPorts: Readonly<Record<string, string>> = { 'ldap:': '389', 'ldaps:': '636' }

/** The guard for outbound calls expects an HTTP URL. */
function targetOf(address: string): URL {
  const { protocol, port } = new URL(address)
  const target = new URL(address.replace(/^ldaps?:/i, 'https:'))
  target.port = port || (defaultPorts[protocol] ?? '')
  return target
}

export const connectDirectory = (
  { url = '' }: ProviderSettings,
  signal: AbortSignal,
  overrides?: OutboundOverrides,
): Promise<Socket> => outboundConnect(targetOf(url), signal, overrides)

// Cached, because parsing hundreds of certificates blocks for tens of milliseconds.
const contexts = new BoundedCache<SecureContext>(20)

/** Returns a context that trusts the certificate in addition to Node's authorities. */
function trustContext(caCertificate: string): SecureContext {
  const cachedContext = contexts.get(caCertificate)
  const context = cachedContext ?? createSecureContext({ ca: [...getCACertificates('default'), caCertificate] })
  if (cachedContext === undefined) contexts.set(caCertificate, context)
  return context
}

/**
 * Uses TLS at once for ldaps, otherwise StartTLS. The certificate must match the host of the URL and come from an
 * authority that Node or the provider's settings trust.
 */
export async function upgradeToTls(socket: Socket, { url = '', caCertificate }: ProviderSettings): Promise<TLSSocket> {
  if (!/^ldaps:/i.test(url)) await startTls(socket)
  const host = targetOf(url).hostname.replace(/^\[(.*)\]$/, '$1')
  const trustOptions = caCertificate === undefined ? {} : { secureContext: trustContext(caCertificate) }
  const nameOptions = isIP(host) === 0 ? { servername: host } : {}
  return new Promise((resolve, reject) => {
    const tlsSocket = connect({ socket, host, ...nameOptions, ...trustOptions, rejectUnauthorized: true })
    tlsSocket.once('secureConnect', () => resolve(tlsSocket))
    tlsSocket.on('error', reject)
    // A connection that closes during the handshake may not emit an error.
    tlsSocket.on('close', () => reject(new MalformedResponse('connection closed')))
  })
}

async function startTls(socket: Socket): Promise<void> {
  socket.write(startTlsRequest)
  let bytes = Buffer.alloc(0)
  // Not `for await`, because leaving the loop would destroy the stream.
  const isAccepted = await new Promise<boolean>((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      try {
        bytes = Buffer.concat([bytes, chunk])
        const accepted = isStartTlsAccepted(bytes)
        if (accepted === undefined) return
        socket.off('data', onData).pause()
        resolve(accepted)
      } catch (error) {
        reject(error)
      }
    }
    socket.on('data', onData)
    socket.once('close', () => reject(new MalformedResponse('connection closed')))
  })
  if (!isAccepted) throw new MalformedResponse('StartTLS rejected')
}
