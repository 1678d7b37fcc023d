import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { RegistryServerError } from './error.ts'

/** The only user with write access. */
export const writerName = 'platform'

const hash = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Throws `UNAUTHORIZED` unless the request has the name and the password of the writer. */
export function requireWriter({ headers }: IncomingMessage, password: string): void {
  const [, encodedCredentials = ''] = /^basic +([\w+/]+=*)$/i.exec(headers.authorization ?? '') ?? []
  const credentials = Buffer.from(encodedCredentials, 'base64').toString('utf8')
  if (timingSafeEqual(hash(credentials), hash(`${writerName}:${password}`))) return
  const challenge = { 'www-authenticate': 'Basic realm="platform"' }
  throw new RegistryServerError('UNAUTHORIZED', `Writing requires the password of the user ${writerName}.`, challenge)
}
