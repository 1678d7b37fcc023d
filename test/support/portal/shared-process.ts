import { PlatformProcess } from '../platform.ts'
import { endWithParent } from '../program.ts'
import { seed, type SeedIds, slowHeartbeat } from './seed.ts'

export interface SharedPlatform {
  url: string
  dataDir: string
}

// Stops when the parent disconnects, and adds the seed data on the parent's message.
const starting = PlatformProcess.start(slowHeartbeat)
endWithParent(async () => (await starting)[Symbol.asyncDispose]())
const platform = await starting
const api = await platform.setUp()
process.on('message', () => void seed(api).then((ids: SeedIds) => process.send?.(ids)))
process.send?.({ url: platform.url, dataDir: platform.dataDir } satisfies SharedPlatform)
