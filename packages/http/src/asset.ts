import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { config } from '@platform/core/config'
import { sha256 } from '@platform/core/id'
import * as z from 'zod'

/** For what anybody may see and what seldom changes. */
export const shortCache = { 'cache-control': 'public, max-age=60' } as const

/** A built file that a function hands out, with headers that let a caller ask whether it has changed. */
export interface Asset {
  text: string
  headers: { 'cache-control': string; etag: string }
}

const held = new Map<string, Asset>()

/** A text that a function hands out, read once in a process. */
export async function asset(name: string): Promise<Asset> {
  const known = held.get(name)
  if (known !== undefined) return known
  const text = (await assetBytes(name)).toString()
  const fresh = { text, headers: { ...shortCache, etag: `"${sha256(text).slice(0, 32)}"` } }
  held.set(name, fresh)
  return fresh
}

/** The content of a file that a function hands out. Read anew each time. */
export const assetBytes = (name: string): Promise<Buffer> =>
  readFile(join(config.PLAT_ASSETS_DIR || join(import.meta.dirname, 'dist'), name))

/** The JSON object that an asset holds. */
export const jsonOf = ({ text }: Asset): Record<string, unknown> =>
  z.record(z.string(), z.unknown()).parse(JSON.parse(text))
