import { PlatformProcess } from '../platform.ts'
import { lasting } from './seed.ts'

/** What a test needs to know of the run's platform. */
export interface SharedPlatform {
  url: string
  dataDir: string
}

/** The run's platform, set up, in a process that ends with its parent. */
const platform = await PlatformProcess.start(lasting)
process.on('disconnect', () => void platform[Symbol.asyncDispose]().then(() => process.exit()))
await platform.setUp()
process.send?.({ url: platform.url, dataDir: platform.dataDir } satisfies SharedPlatform)
