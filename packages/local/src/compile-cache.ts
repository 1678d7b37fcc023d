import { join } from 'node:path'
import { projectDir } from './project-dir.ts'

/** Shortens the start: Node.js stores compiled code in this folder. */
export const compileCache = {
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] || join(projectDir, 'node_modules/.cache/compiled'),
}

/** The code of releases is not cached, because caches of removed releases would accumulate. */
export const compileCacheFor = (folder: string): Partial<typeof compileCache> =>
  folder.startsWith(projectDir) ? compileCache : {}
