import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { platformError } from '@platform/core/error'
import type { Charge } from './byte-budget.ts'

/** The same limit as in the functions, although API Gateway accepts 10 MiB. */
export const maxBodyBytes = 4 * 1024 * 1024
/** A longer body is read only after a function has authenticated its caller. */
const maxUnauthenticatedBytes = 64 * 1024

export interface EventBody {
  body?: string
  isBase64Encoded: boolean
}

/**
 * Memory of a request: `charge` applies until the response is sent, `unauthenticated` until the caller is authenticated
 * or the body is complete.
 */
export interface RequestMemory {
  charge: Charge
  unauthenticated: Charge
}

/**
 * Authenticates the sender of a long body. Returns the number of bytes that may be read, or the response that rejects
 * the request.
 */
export type Admit = () => Promise<{ limitBytes: number } | { rejection: unknown }>

/**
 * Reads a body, or returns the response that rejects its caller. Throws `payload_too_large` as early as possible, and
 * `overloaded` if other requests need the memory.
 */
export function readBody(
  request: IncomingMessage,
  { charge, unauthenticated }: RequestMemory,
  admit: Admit,
): Promise<{ bytes: Buffer } | { rejection: unknown }> {
  const declaredBytes = Number(request.headers['content-length'] ?? 0)
  if (declaredBytes > maxBodyBytes) return Promise.reject(platformError('payload_too_large'))
  return new Promise((resolve, reject) => {
    let body: Body = { buffer: Buffer.alloc(0), sizeBytes: 0 }
    let limitBytes = maxUnauthenticatedBytes
    let isAdmitted = false

    const discard = () => {
      request.off('data', take)
      body = { buffer: Buffer.alloc(0), sizeBytes: 0 }
      for (const each of [charge, unauthenticated]) each.release()
    }
    const fail = (error: Error) => {
      discard()
      reject(error)
    }
    const evict = () => fail(platformError('overloaded', { retryAfterSeconds: 1 }))
    const hold = () => {
      const { length } = body.buffer
      if (limitBytes < maxBodyBytes) unauthenticated.set(length, evict)
      if (body.sizeBytes > 0) charge.set(length, evict)
    }
    const requestAdmission = async () => {
      isAdmitted = true
      request.pause()
      const admission = await admit()
      if ('rejection' in admission) {
        discard()
        return resolve(admission)
      }
      limitBytes = admission.limitBytes
      if (limitBytes >= maxBodyBytes) unauthenticated.release()
      request.resume()
    }
    const take = (chunk: Buffer) => {
      if (body.sizeBytes + chunk.length > (isAdmitted ? limitBytes : maxBodyBytes)) {
        return fail(platformError('payload_too_large'))
      }
      body = append(body, chunk)
      hold()
      if (body.sizeBytes > limitBytes) requestAdmission().catch(fail)
    }
    if (declaredBytes > limitBytes) requestAdmission().catch(fail)
    request.on('data', take)
    request.on('error', fail)
    request.on('end', () => {
      unauthenticated.release()
      charge.set(body.buffer.length)
      resolve({ bytes: body.buffer.subarray(0, body.sizeBytes) })
    })
  })
}

interface Body {
  buffer: Buffer
  sizeBytes: number
}

/** Copies chunks into one buffer, because each small chunk would occupy many times its size. */
function append({ buffer, sizeBytes }: Body, chunk: Buffer): Body {
  if (sizeBytes === 0) return { buffer: chunk, sizeBytes: chunk.length }
  const neededBytes = sizeBytes + chunk.length
  const grown = neededBytes <= buffer.length ? buffer : Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * buffer.length))
  if (grown !== buffer) buffer.copy(grown, 0, 0, sizeBytes)
  chunk.copy(grown, sizeBytes)
  return { buffer: grown, sizeBytes: neededBytes }
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
