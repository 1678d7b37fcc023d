import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import * as z from 'zod'
import { writeDurably } from '../emulators/secrets/durable-file.ts'
import { StartError } from '../start-error.ts'

/**
 * The demo has a folder of its own, which a marker file identifies. A folder with content but without the marker is
 * never used, changed or removed.
 */

const Marker = z.object({ username: z.string(), password: z.string() })

export interface Demo {
  folder: string
  dataDir: string
  relaysDir: string
  /** The administrator that the demo creates. */
  username: string
  password: string
}

const demoFolder = (): string => resolve('.platform-demo')

const markerIn = (folder: string): string => join(folder, 'demo.json')

/** Returns undefined if the folder does not exist or is empty. Throws `StartError` if it has no marker. */
export async function findDemo(): Promise<Demo | undefined> {
  const folder = demoFolder()
  const entry = await lstat(folder).catch(() => undefined)
  if (entry === undefined || (entry.isDirectory() && (await readdir(folder)).length === 0)) return undefined
  const text = entry.isDirectory() ? await readFile(markerIn(folder), 'utf8').catch(() => '') : ''
  const marker = z.preprocess(parseJson, Marker).safeParse(text)
  if (!marker.success) throw new StartError(`${folder} is not the folder of a demo. Move it, and try again.`)
  return { folder, dataDir: join(folder, 'data'), relaysDir: join(folder, 'relays'), ...marker.data }
}

function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    return undefined
  }
}

/** Creates the folder if it does not exist, by renaming a draft that contains the marker. */
export async function openDemo(): Promise<Demo> {
  const existingDemo = await findDemo()
  if (existingDemo !== undefined) return existingDemo
  const folder = demoFolder()
  const draft = `${folder}.${randomUUID()}`
  await mkdir(draft, { mode: 0o700 })
  const marker: z.infer<typeof Marker> = { username: 'demo', password: randomBytes(18).toString('base64url') }
  writeDurably(markerIn(draft), `${JSON.stringify(marker)}\n`)
  try {
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // The rename also fails if a concurrent start has created the folder.
    if ((await findDemo()) === undefined) throw error
  }
  return openDemo()
}

/** Writes the marker again if the folder was removed during a start. */
export function keepMarker({ folder, username, password }: Demo): void {
  if (!existsSync(markerIn(folder))) writeDurably(markerIn(folder), `${JSON.stringify({ username, password })}\n`)
}

/** Removes the marker last, so that an interrupted removal can be repeated. */
export async function removeDemo({ folder }: Demo): Promise<void> {
  const names = (await readdir(folder)).filter((name) => join(folder, name) !== markerIn(folder))
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 3 })
  await rm(markerIn(folder), { force: true })
  if (existsSync(folder)) await rmdir(folder)
}
