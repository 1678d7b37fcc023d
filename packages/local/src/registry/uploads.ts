import { createHash, type Hash, randomUUID } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { RegistryServerError } from './error.ts'

/** Blobs that are being uploaded. The state is in memory, so clients must repeat their uploads after a restart. */
export interface Uploads {
  beginUpload: (repository: string) => Promise<Upload>
  /** Throws `BLOB_UPLOAD_UNKNOWN` if there is no such upload. */
  find: (repository: string, id: string) => Upload
  /** Appends content. Keeps the content received before a disconnect; any other error in a write cancels the upload. */
  append: (upload: Upload, chunks: AsyncIterable<Uint8Array>) => Promise<void>
  /** Ends an upload, and keeps its draft. If the digest differs, deletes the draft and throws `DIGEST_INVALID`. */
  finish: (upload: Upload, digest: string) => Promise<void>
  cancel: (upload: Upload) => Promise<void>
}

export interface Upload {
  id: string
  repository: string
  draft: string
  sizeBytes: number
  hash: Hash
  isBusy: boolean
  lastUsedAtMs: number
}

const maxUploads = 100
const expiryMs = 3_600_000

/** `maxBytes` limits one blob. */
export function createUploads(newDraft: () => string, maxBytes: number): Uploads {
  const uploads = new Map<string, Upload>()

  const cancel = async (upload: Upload) => {
    uploads.delete(upload.id)
    await rm(upload.draft, { force: true })
  }
  const cancelExpired = () => {
    const expiredUploads = [...uploads.values()].filter(
      ({ isBusy, lastUsedAtMs }) => !isBusy && performance.now() - lastUsedAtMs > expiryMs,
    )
    return Promise.all(expiredUploads.map(cancel))
  }
  return {
    beginUpload: async (repository) => {
      await cancelExpired()
      if (uploads.size >= maxUploads)
        throw new RegistryServerError('TOOMANYREQUESTS', 'Too many uploads are in progress.')
      const draft = newDraft()
      const id = randomUUID()
      const hash = createHash('sha256')
      const upload = { id, repository, draft, sizeBytes: 0, hash, isBusy: false, lastUsedAtMs: performance.now() }
      uploads.set(id, upload)
      return upload
    },
    find: (repository, id) => {
      const upload = uploads.get(id)
      if (upload?.repository === repository) return upload
      throw new RegistryServerError(
        'BLOB_UPLOAD_UNKNOWN',
        'The upload does not exist, or the registry was restarted. Start again.',
      )
    },
    append: async (upload, chunks) => {
      if (upload.isBusy) throw new RegistryServerError('BLOB_UPLOAD_INVALID', 'Another request writes to this upload.')
      upload.isBusy = true
      try {
        await write(upload, chunks, maxBytes)
      } catch (error) {
        // After a failed write, the length of the draft is unknown.
        if (!isDisconnect(error)) await cancel(upload)
        throw error
      } finally {
        upload.isBusy = false
        upload.lastUsedAtMs = performance.now()
      }
    },
    finish: async (upload, digest) => {
      uploads.delete(upload.id)
      const actualDigest = `sha256:${upload.hash.digest('hex')}`
      if (actualDigest === digest) return
      await rm(upload.draft, { force: true })
      throw new RegistryServerError('DIGEST_INVALID', `The content has the digest ${actualDigest}.`)
    },
    cancel,
  }
}

async function write(upload: Upload, chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<void> {
  await using file = await open(upload.draft, 'a', 0o600)
  for await (const chunk of chunks) {
    if (upload.sizeBytes + chunk.length > maxBytes) {
      throw new RegistryServerError('SIZE_INVALID', `A blob has at most ${maxBytes} bytes.`)
    }
    await file.writeFile(chunk)
    upload.hash.update(chunk)
    upload.sizeBytes += chunk.length
  }
}

/** Whether the client disconnected before it sent the whole body. */
const isDisconnect = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  (error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_PREMATURE_CLOSE')
