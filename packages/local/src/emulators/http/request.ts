import type { IncomingMessage } from 'node:http'
import { AwsServiceError } from './error.ts'

export type JsonObject = Record<string, unknown>

const maxBodyBytes = 8 * 1024 * 1024
const loopbackHost = /^(127\.0\.0\.1|localhost)(:\d+)?$/

/** Accepts only loopback hosts, so that a web page whose host name resolves to this machine is rejected. */
export function requireLoopbackHost(request: IncomingMessage): void {
  if (!loopbackHost.test(request.headers.host ?? '')) {
    throw new AwsServiceError(
      'AccessDeniedException',
      'This server accepts only requests to the loopback address.',
      403,
    )
  }
}

/** Checks the access key of the signature, but not the signature itself. */
export function requireSigner(request: IncomingMessage, accessKeyId: string | undefined): void {
  const signer = /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\//.exec(request.headers.authorization ?? '')?.[1]
  if (signer === undefined) {
    throw new AwsServiceError('MissingAuthenticationTokenException', 'The request must be signed.', 403)
  }
  if (accessKeyId !== undefined && signer !== accessKeyId) {
    throw new AwsServiceError('UnrecognizedClientException', 'The access key of the request is not known here.', 403)
  }
}

/** Reads the action from `X-Amz-Target`: `SendMessage` of `AmazonSQS.SendMessage`. */
export function actionOf(target: string | string[] | undefined, service: string): string {
  const [name, action] = String(target ?? '').split('.')
  if (name !== service || action === undefined) {
    throw new AwsServiceError('UnknownOperationException', `X-Amz-Target must name an action of ${service}.`)
  }
  return action
}

export async function readJson(request: IncomingMessage, maxBytes = maxBodyBytes): Promise<JsonObject> {
  return parseJson(await readText(request, maxBytes))
}

/** An empty text counts as `{}`. Throws `SerializationException` if the text is not a JSON object. */
export function parseJson(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text || '{}')
    if (isJsonObject(value)) return value
  } catch {
    // Rejected below, like any other body that is not an object.
  }
  throw new AwsServiceError('SerializationException', 'The body must be a JSON object.')
}

/** Returns the objects in a list; an empty list for any other value. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > maxBytes) throw new AwsServiceError('RequestEntityTooLarge', 'The body is too large.', 413)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
