import type { IncomingMessage } from 'node:http'
import { platformError } from '@platform/core/error'

/** The largest request that API Gateway takes. */
const maximumRequestBytes = 10 * 1024 * 1024

/** The body of an event; without a body it has none. */
export interface EventBody {
  body?: string
  isBase64Encoded: boolean
}

/** Reads a request body; refuses one that is too large as soon as that is known. */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maximumRequestBytes) {
    return Promise.reject(platformError('payload_too_large'))
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes > maximumRequestBytes) reject(platformError('payload_too_large'))
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

/** Texts by API Gateway's measure; a form and a body without a type are not. */
const textType = /^(text\/.*|application\/(json|xml|javascript))$/

/** A text goes into an event as it is, anything else in Base64. */
export function eventBody(bytes: Buffer, contentType: string | undefined): EventBody {
  if (bytes.length === 0) return { isBase64Encoded: false }
  const mediaType = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return textType.test(mediaType)
    ? { body: bytes.toString('utf8'), isBase64Encoded: false }
    : { body: bytes.toString('base64'), isBase64Encoded: true }
}
