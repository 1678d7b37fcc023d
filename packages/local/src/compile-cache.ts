import { join } from 'node:path'
import { projectDir } from './settings.ts'

/** Has Node keep what a thread compiles, in a place that the next start finds: that is a third of the work of starting. */
export const compileCache = {
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] || join(projectDir, 'node_modules/.cache/compiled'),
}

/** The same for threads that run code of some folder. Only that of this project stays where it is: all other would pile up. */
export const compileCacheFor = (folder: string): Partial<typeof compileCache> =>
  folder.startsWith(projectDir) ? compileCache : {}
