import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { config } from '@platform/core/config'
import { sha256 } from '@platform/core/id'
import * as z from 'zod'

/** Cache headers for public content that changes rarely. */
export const shortCacheHeaders = { 'cache-control': 'public, max-age=60' } as const

/** A text file of the build with its cache headers. */
export interface Asset {
  text: string
  headers: { 'cache-control': string; etag: string }
}

const cache = new Map<string, Asset>()

/** Reads a text file of the build, and caches it for the lifetime of the process. */
export async function loadAsset(name: string): Promise<Asset> {
  const cachedAsset = cache.get(name)
  if (cachedAsset !== undefined) return cachedAsset
  const text = (await readAsset(name)).toString()
  const asset = { text, headers: { ...shortCacheHeaders, etag: `"${sha256(text).slice(0, 32)}"` } }
  cache.set(name, asset)
  return asset
}

export const readAsset = (name: string): Promise<Buffer> =>
  readFile(join(config.PLAT_ASSETS_DIR || join(import.meta.dirname, 'dist'), name))

export const jsonOf = ({ text }: Asset): Record<string, unknown> =>
  z.record(z.string(), z.unknown()).parse(JSON.parse(text))
