import { createReadStream } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { RegistryServerError } from './error.ts'

/** Header names are lower-case. */
export interface RegistryResponse {
  status: number
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array | FilePart
}

/** `start` and `end` are inclusive. */
export interface FilePart {
  path: string
  start: number
  end: number
}

const sizeOf = (body: RegistryResponse['body']): number => {
  if (body === undefined) return 0
  return 'path' in body ? body.end - body.start + 1 : body.length
}

/** Sends only the headers for HEAD. Rejects if a file is too short, or the caller disconnects during its transfer. */
export async function sendResponse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers = {}, body }: RegistryResponse,
): Promise<void> {
  response.writeHead(status, {
    'docker-distribution-api-version': 'registry/2.0',
    'x-content-type-options': 'nosniff',
    ...headers,
    ...(status !== 204 && { 'content-length': sizeOf(body) }),
  })
  const isFile = body !== undefined && 'path' in body
  if (isFile && request.method !== 'HEAD' && sizeOf(body) > 0) await sendFile(response, body)
  else response.end(isFile || request.method === 'HEAD' ? undefined : body)
}

async function sendFile(response: ServerResponse, { path, start, end }: FilePart): Promise<void> {
  const file = createReadStream(path, { start, end })
  await pipeline(file, response, { end: false })
  if (file.bytesRead <= end - start) throw new Error('The file was truncated.')
  response.end()
}

export const jsonResponse = (
  status: number,
  content: unknown,
  headers: Readonly<Record<string, string>> = {},
): RegistryResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from(JSON.stringify(content)),
})

/** Uses the error format of the distribution specification. */
export const errorResponse = ({ status, code, message, headers }: RegistryServerError): RegistryResponse =>
  jsonResponse(status, { errors: [{ code, message }] }, headers)

/**
 * Returns the part that a `Range` header selects; the whole file if the header does not select exactly one part. Throws
 * `RANGE_INVALID` for a part outside the file.
 */
export function fileResponse(
  path: string,
  size: number,
  range: string | undefined,
  headers: Readonly<Record<string, string>>,
): RegistryResponse {
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? []
  if (from === '' && to === '') return { status: 200, headers, body: { path, start: 0, end: size - 1 } }
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const end = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (start > end)
    throw new RegistryServerError('RANGE_INVALID', 'The range is not satisfiable.', {
      'content-range': `bytes */${size}`,
    })
  const rangeHeader = { 'content-range': `bytes ${start}-${end}/${size}` }
  return { status: 206, headers: { ...headers, ...rangeHeader }, body: { path, start, end } }
}
