import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { digestOf } from './digest.ts'
import { IndexDocument, ManifestDocument, parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { type Descriptor, type Index, type Manifest, mediaTypes } from './types.ts'
import { makeFolder } from './make-folder.ts'

/** Files of an OCI image layout (version 1.0). */

const refNameAnnotation = 'org.opencontainers.image.ref.name'
const maxManifestBytes = 4 * 2 ** 20

export const layoutError = (folder: string, description: string): RegistryError =>
  new RegistryError('invalid', `${description} in ${folder} is missing or broken.`)

export const withTag = ({ mediaType, digest, size }: Descriptor, tag: string | undefined): Descriptor => ({
  mediaType,
  digest,
  size,
  ...(tag !== undefined && { annotations: { [refNameAnnotation]: tag } }),
})

/** Returns undefined if the descriptor has no tag or an invalid one. */
export const tagOf = ({ annotations }: Descriptor): string | undefined =>
  /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.exec(annotations?.[refNameAnnotation] ?? '')?.[0]

const blobPath = (folder: string, digest: string): string => join(folder, 'blobs', ...digest.split(':'))

async function writeAtomically(path: string, content: Uint8Array | string): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`
  await writeFile(draft, content)
  await rename(draft, path)
}

export async function writeBlob(folder: string, bytes: Uint8Array): Promise<void> {
  makeFolder(join(folder, 'blobs', 'sha256'))
  await writeAtomically(blobPath(folder, digestOf(bytes)), bytes)
}

/** Verifies the digest. Throws `RegistryError`. */
export async function readBlob(folder: string, digest: string, maxBytes: number): Promise<Buffer> {
  const path = blobPath(folder, digest)
  const { size } = await stat(path).catch(() => ({ size: -1 }))
  if (size > maxBytes) throw new RegistryError('too_large', `${digest} in ${folder} has more than ${maxBytes} bytes.`)
  const bytes = size < 0 ? undefined : await readFile(path)
  if (bytes === undefined || digestOf(bytes) !== digest) throw layoutError(folder, digest)
  return bytes
}

export async function readManifest(
  folder: string,
  digest: string,
): Promise<{ content: Manifest | Index; bytes: Buffer }> {
  const bytes = await readBlob(folder, digest, maxManifestBytes)
  const content = documentOf(z.union([IndexDocument, ManifestDocument]), bytes)
  if (content === undefined) throw layoutError(folder, digest)
  if ('manifests' in content)
    return { content: { ...content, mediaType: content.mediaType ?? mediaTypes.index }, bytes }
  return { content: { ...content, mediaType: content.mediaType ?? mediaTypes.manifest }, bytes }
}

function documentOf<Schema extends z.ZodType>(schema: Schema, body: Buffer): z.output<Schema> | undefined {
  try {
    return parseDocument(schema, { body, isCutShort: body.length > maxManifestBytes }, 'A document')
  } catch {
    return undefined
  }
}

/** Returns undefined if the folder is not a layout yet. Throws `RegistryError`. */
export async function readIndex(folder: string): Promise<Descriptor[] | undefined> {
  const path = join(folder, 'index.json')
  const exists = await stat(path).then(
    () => true,
    () => false,
  )
  if (!exists) return undefined
  const document = documentOf(IndexDocument, await readFile(path))
  if (document === undefined) throw layoutError(folder, 'index.json')
  return document.manifests
}

/** Creates the layout if necessary. A tag moves to the last entry that has it. */
export async function addToIndex(folder: string, entries: readonly Descriptor[]): Promise<void> {
  const existingEntries = (await readIndex(folder)) ?? []
  // Lists a digest without a tag only once.
  const entriesByKey = new Map([...existingEntries, ...entries].map((entry) => [tagOf(entry) ?? entry.digest, entry]))
  await writeAtomically(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [...entriesByKey.values()] }
  await writeAtomically(join(folder, 'index.json'), JSON.stringify(index))
}
