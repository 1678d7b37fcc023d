import { PlatformProcess } from '../platform.ts'
import { seed, type SeedIds, slowHeartbeat } from './seed.ts'

export interface SharedPlatform {
  url: string
  dataDir: string
}

// Stops when the parent disconnects, and adds the seed data on the parent's message.
const platform = await PlatformProcess.start(slowHeartbeat)
process.on('disconnect', () => void platform[Symbol.asyncDispose]().then(() => process.exit()))
const api = await platform.setUp()
process.on('message', () => void seed(api).then((ids: SeedIds) => process.send?.(ids)))
process.send?.({ url: platform.url, dataDir: platform.dataDir } satisfies SharedPlatform)
