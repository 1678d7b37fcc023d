import { buffer } from 'node:stream/consumers'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { buildImage } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { readImage } from '@platform/oci/image'
import type { BuiltLayer } from '@platform/oci/pack'
import { pushImage } from '@platform/oci/push'
import type { Image } from '@platform/oci/types'
import { type Header, pack } from 'tar-stream'

export type RawEntry = Partial<Header> & { name: string; content?: string | Buffer }

export async function tarOf(entries: readonly RawEntry[]): Promise<Buffer> {
  const archive = pack()
  for (const { content = '', ...header } of entries) {
    archive.entry({ mtime: new Date(0), ...header }, content)
  }
  archive.finalize()
  return buffer(archive)
}

const compressors = {
  'tar+gzip': (tar: Buffer): Buffer => gzipSync(tar),
  'tar+zstd': (tar: Buffer): Buffer => zstdCompressSync(tar),
  tar: (tar: Buffer): Buffer => tar,
}

export function layerOf(tar: Buffer, form: keyof typeof compressors = 'tar+gzip'): BuiltLayer & { bytes: Buffer } {
  const bytes = compressors[form](tar)
  const mediaType = `application/vnd.oci.image.layer.v1.${form}`
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, diffId: digestOf(tar), bytes }
}

export async function imageOf(client: RegistryClient, ...layers: BuiltLayer[]): Promise<Image> {
  const { digest } = await pushImage(client, 'team/hello', await buildImage({ files: [], layers }), ['1'])
  const image = await readImage(client, 'team/hello', digest)
  if (image === undefined) throw new Error('The image is not there.')
  return image
}

export async function imageOfEntries(client: RegistryClient, ...layers: RawEntry[][]): Promise<Image> {
  return imageOf(client, ...(await Promise.all(layers.map(async (entries) => layerOf(await tarOf(entries))))))
}
