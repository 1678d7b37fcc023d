import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { threadId } from 'node:worker_threads'
import { type UnpackLimits, defaultUnpackLimits } from './layer-limits.ts'
import type { RegistryClient } from './client.ts'
import { digestTag } from './digest.ts'
import { RegistryError } from './error.ts'
import { quote } from './image-path.ts'
import { layerEntries, type LayerEntry, layersOf } from './layer.ts'
import { ImageTree } from './image-tree.ts'
import type { Image } from './types.ts'

const unpacksByDir = new Map<string, Promise<string>>()

/**
 * Returns the absolute path of an image's root directory in a store, `<store>/<digest>/root`, and unpacks the image if
 * necessary. The directory appears only when it is complete, even if other processes unpack the same image or are
 * killed. The current user owns the files. Devices and special modes are omitted; links stay inside. Throws
 * `RegistryError` (`too_large` beyond the limits, by default 2 GiB and 100,000 files).
 */
export function unpackImage(
  client: RegistryClient,
  image: Image,
  storeDir: string,
  limits: Partial<UnpackLimits> = {},
): Promise<string> {
  const imageDir = join(resolve(storeDir), digestTag(image.digest))
  const runningUnpack = unpacksByDir.get(imageDir)
  if (runningUnpack !== undefined) return runningUnpack
  const unpack = unpackInto(client, image, imageDir, { ...defaultUnpackLimits(), ...limits }).finally(() =>
    unpacksByDir.delete(imageDir),
  )
  unpacksByDir.set(imageDir, unpack)
  return unpack
}

async function unpackInto(
  client: RegistryClient,
  image: Image,
  imageDir: string,
  limits: UnpackLimits,
): Promise<string> {
  const root = join(imageDir, 'root')
  if (await exists(join(imageDir, 'done'))) return root
  await removeDrafts(imageDir)
  const draft = `${imageDir}.${process.pid}-${threadId}.tmp`
  try {
    await mkdir(join(draft, 'root'), { recursive: true })
    await applyLayers(client, image, new ImageTree(join(draft, 'root'), limits), limits)
    await writeFile(join(draft, 'done'), image.digest)
    await publishDraft(imageDir, draft)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return root
}

/** Renames the draft. If another process was first, its result remains. */
async function publishDraft(imageDir: string, draft: string): Promise<void> {
  try {
    await rename(draft, imageDir)
  } catch {
    if (await exists(join(imageDir, 'done'))) return
    // After a power failure the directory may exist without its content.
    await rm(imageDir, { recursive: true, force: true })
    await rename(draft, imageDir)
  }
}

async function applyLayers(client: RegistryClient, image: Image, tree: ImageTree, limits: UnpackLimits): Promise<void> {
  for (const layer of layersOf(image)) {
    tree.startLayer()
    for await (const entry of layerEntries(client, image.repository, layer, limits)) await apply(tree, entry)
  }
}

/** Error codes of file systems for invalid paths. */
const pathErrorCodes = new Set('ENAMETOOLONG EEXIST ENOTDIR EISDIR ENOTEMPTY ELOOP EINVAL EILSEQ EMLINK'.split(' '))

async function apply(tree: ImageTree, entry: LayerEntry): Promise<void> {
  try {
    await tree.apply(entry)
  } catch (cause) {
    const isPathError = cause instanceof Error && 'code' in cause && pathErrorCodes.has(String(cause.code))
    if (!isPathError) throw cause
    throw new RegistryError('invalid', `The entry ${quote(entry.path)} cannot be unpacked.`, { cause })
  }
}

/** Removes the drafts of an image that killed processes have left. */
async function removeDrafts(imageDir: string): Promise<void> {
  const store = join(imageDir, '..')
  await mkdir(store, { recursive: true })
  for (const name of await readdir(store)) {
    const draft = join(store, name).startsWith(`${imageDir}.`) ? /\.(\d+)-(\d+)\.tmp$/.exec(name) : null
    if (draft !== null && !isRunning(Number(draft[1]), Number(draft[2]))) {
      await rm(join(store, name), { recursive: true, force: true })
    }
  }
}

/** Whether the thread that owns a draft may still be running. The calling thread has no active draft. */
function isRunning(pid: number, thread: number): boolean {
  if (pid === process.pid) return thread !== threadId
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
