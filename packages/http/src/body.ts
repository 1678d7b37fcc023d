import type { EndpointDefinition } from '@platform/contract/endpoint'
import { PlatformError, platformError, validationFailed } from '@platform/core/error'
import { jsonLimitErrors } from './json-limits.ts'
import { bytesOf, type GatewayEvent } from './event.ts'

/** More than any form holds that the platform takes. */
const maximumFormBytes = 32 * 1024
const formType = /^application\/x-www-form-urlencoded *(?:; *charset="?utf-8"? *)?$/i
const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/** The JSON object of a request, read when it is first asked for. */
export type LazyJson = () => object

/** Reads the body once, within the bounds of D35. */
export function lazyJson(event: GatewayEvent): LazyJson {
  let body: object | undefined
  return () => (body ??= readJson(event))
}

function readJson(event: GatewayEvent): object {
  if (!event.body) throw platformError('invalid_json')
  if (!jsonType.test(event.headers['content-type'] ?? '')) throw platformError('unsupported_media_type')
  const body = parse(event)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw platformError('invalid_json')
  const details = jsonLimitErrors(body)
  if (details.length > 0) throw validationFailed(details)
  return body
}

function parse(event: GatewayEvent): unknown {
  try {
    return JSON.parse(event.isBase64Encoded ? decode(bytesOf(event)) : (event.body ?? ''))
  } catch {
    throw platformError('invalid_json')
  }
}

const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)

/** The text of a form, as long as those that the platform takes; empty where there is no body. */
export function readForm(event: GatewayEvent): string {
  if (!event.body) return ''
  if (!formType.test(event.headers['content-type'] ?? '')) throw platformError('unsupported_media_type')
  const bytes = bytesOf(event)
  if (bytes.length > maximumFormBytes) throw platformError('payload_too_large')
  return Buffer.from(bytes).toString()
}

/** The body for an endpoint, before its schema. Where the verb checks it, the verb also says when it is none (D2). */
export function readBody({ request }: EndpointDefinition, json: LazyJson, event: GatewayEvent): unknown {
  if (!request?.body) return undefined
  if (!request.bodyCheckedByVerb) return json()
  try {
    return json()
  } catch (error) {
    // What is an object, but out of bounds, is refused after the verb's own first checks: by its schema.
    return error instanceof PlatformError && error.code === 'validation_failed' ? parse(event) : undefined
  }
}
