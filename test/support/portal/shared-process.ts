import { PlatformProcess } from '../platform.ts'
import { lasting, type Places, seed } from './seed.ts'

/** What a test needs to know of the run's platform. */
export interface SharedPlatform {
  url: string
  dataDir: string
}

/** The run's platform, set up, in a process that ends with its parent. The parent may ask for the seed, once. */
const platform = await PlatformProcess.start(lasting)
process.on('disconnect', () => void platform[Symbol.asyncDispose]().then(() => process.exit()))
const api = await platform.setUp()
process.on('message', () => void seed(api).then((places: Places) => process.send?.(places)))
process.send?.({ url: platform.url, dataDir: platform.dataDir } satisfies SharedPlatform)
