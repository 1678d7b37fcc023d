import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { platformError } from '@platform/core/error'

/** The limit of API Gateway. */
const maximumRequestBytes = 10 * 1024 * 1024

export interface EventBody {
  body?: string
  isBase64Encoded: boolean
}

/** Rejects a body over the limit as early as possible. */
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

/** Media types that API Gateway treats as text. Forms and bodies without a type are not text. */
const textType = /^(text\/.*|application\/(json|xml|javascript))$/

/** UTF-8 text is passed unchanged in an event, anything else in Base64, so that functions can reject invalid text. */
export function eventBody(bytes: Buffer, contentType: string | undefined): EventBody {
  if (bytes.length === 0) return { isBase64Encoded: false }
  const mediaType = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return textType.test(mediaType) && isUtf8(bytes)
    ? { body: bytes.toString('utf8'), isBase64Encoded: false }
    : { body: bytes.toString('base64'), isBase64Encoded: true }
}
