import { digestOf } from '@platform/oci/digest'
import { mediaTypes } from '@platform/oci/types'
import type { ServerReply } from '../support/http-server.ts'

export const config = { mediaType: mediaTypes.empty, digest: digestOf('{}'), size: 2 }
export const image = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [config] }
export const index = {
  schemaVersion: 2,
  mediaType: mediaTypes.index,
  manifests: [{ ...config, mediaType: mediaTypes.manifest }],
}
export const imageBytes = Buffer.from(JSON.stringify(image))
export const subject = { mediaType: mediaTypes.manifest, digest: digestOf(imageBytes), size: imageBytes.length }

export const json = (value: unknown, headers: ServerReply['headers'] = {}): ServerReply => {
  const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)
  const length = String(Buffer.byteLength(body))
  return { status: 200, headers: { 'content-type': mediaTypes.manifest, 'content-length': length, ...headers }, body }
}
export const to = (location: string, status = 307): ServerReply => ({ status, headers: { location } })
